//! Goes through a file's stages with an item.

use std::sync::Arc;

use super::prompt::Reasons;
use super::reply::ParsedReply;
use super::schema::{PROMPT, ReplyKind, Stage, SystemFile, YES_NO};
use super::settings::Settings;
use super::transcript::Transcript;
use crate::data::{Choice, Item, ItemKind, Note};
use crate::diagnosis::Failure;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::fill;
use crate::record::{self, FinishReason, ItemLine, Message};
use crate::systems::case::{Case, Step};
use crate::systems::config::Given;
use crate::systems::exemplars::{Exemplar, Exemplars, Selection};
use crate::systems::medreflex::settings::Temperatures;
use crate::systems::messages::{messages, numbered, option_lines};
use crate::systems::opinion::note_line;
use crate::systems::{System, Task};

/// A file with its prompts and settings, ready to work on items.
pub struct Staged {
    /// With its texts in place.
    file: SystemFile,
    settings: Settings,
    reasons: Reasons,
    exemplars: Arc<Exemplars>,
}

impl Staged {
    pub fn new(
        file: &SystemFile,
        settings: &Settings,
        Given { prompts, exemplars }: &Given<'_>,
    ) -> Result<Staged, Failure> {
        let whole = file.clone().with_texts(|source| {
            let name = source.strip_suffix(PROMPT).unwrap_or(source);
            Ok(prompts.get(&format!("{}/{name}", file.prompts), &[])?)
        });
        Ok(Staged {
            file: whole.map_err(|error| error.about(&file.source.name))?,
            settings: settings.clone(),
            reasons: Reasons::new(prompts)?,
            exemplars: Arc::clone(exemplars),
        })
    }

    fn run_stages<T>(&self, case: &Case<'_, T>) -> Result<Transcript, PanelError> {
        let mut transcript = Transcript::default();
        for stage in &self.file.stages {
            for round in 0..stage.rounds {
                if transcript.holds(stage.when) {
                    let asked = self.ask(case, stage, round, &transcript)?;
                    transcript.hear(stage, &asked);
                }
            }
        }
        Ok(transcript)
    }

    fn ask<T>(
        &self,
        case: &Case<'_, T>,
        stage: &Stage,
        round: u32,
        transcript: &Transcript,
    ) -> Result<Vec<Asked<ParsedReply>>, PanelError> {
        let item = case.task.item;
        let agents = self.agents(stage);
        let samples = self.settings.samples.unwrap_or(1) as u32;
        let (role, round) = match item {
            Item::Question(_) => {
                (transcript.role(agents.len() * samples as usize), transcript.steps)
            }
            Item::Note(_) => (record::Stage::Final, round),
        };
        let grammar = stage.grammar(item, &self.settings.decoding);
        let step = Step::new(role, round, stage.name.as_str(), grammar);
        let is_published = self.settings.temperatures != Some(Temperatures::Model);
        let mut calls: Vec<Call> = Vec::new();
        for (member, agent) in agents {
            let messages = self.messages(stage, item, agent, transcript);
            calls.extend((0..samples).map(|sample| {
                let mut call = case.call(&step, member, agent, messages.clone());
                call.key.sample = sample;
                call.temperature = stage.temperature.filter(|_| is_published);
                call
            }));
        }
        let read = |text: &str, finish_reason: FinishReason| stage.read(text, finish_reason, item);
        let mut asked = case.ask_all(calls.clone(), read)?;
        for _ in 1..stage.tries {
            for (call, asked) in calls.iter_mut().zip(&mut asked) {
                // Without sampling it would say the same again.
                let may_differ = asked.call.sampling.temperature != Some(0.0);
                if asked.call.basis().is_none() && may_differ {
                    call.key.sample += samples;
                    *asked = case.ask(call.clone(), read)?;
                }
            }
        }
        Ok(asked)
    }

    /// The agents that a stage asks, each with its place in the panel.
    fn agents(&self, stage: &Stage) -> Vec<(usize, &str)> {
        let agents = self.file.agents.iter().map(String::as_str).enumerate();
        agents.filter(|(_, agent)| stage.asks(agent)).collect()
    }

    fn messages(
        &self,
        stage: &Stage,
        item: &Item,
        agent: &str,
        transcript: &Transcript,
    ) -> Vec<Message> {
        let mut values: Vec<(&str, String)> =
            vec![("agent", agent.to_owned()), ("said", transcript.said.join("\n\n"))];
        match item {
            Item::Question(question) => {
                values.push(("question", question.question.clone()));
                values.push(("options", option_lines(question)));
            }
            Item::Note(note) => {
                let id = transcript.finding.opinion.sentence_id;
                let sentence = id.and_then(|id| note.sentences.get(id)).cloned();
                values.push(("note", numbered(note)));
                values.push(("text", note.text.clone()));
                values.push(("id", id.map_or(String::new(), |id| id.to_string())));
                values.push(("sentence", sentence.unwrap_or_default()));
                if stage.exemplars.is_some() {
                    values.extend(self.reasons.blocks(stage, &self.shots(stage, note)));
                }
            }
        }
        // Of a stage that was left out, nothing.
        values.extend(self.file.stages.iter().map(|one| {
            let name = one.name.as_str();
            (name, transcript.stages.get(name).cloned().unwrap_or_default())
        }));
        let texts = self.file.texts.keys().map(|name| {
            let told = fill(self.text(name, item), &values);
            (name.as_str(), told)
        });
        let texts: Vec<(&str, String)> = texts.collect();
        values.extend(texts);
        let [system, user] = [&stage.system, &stage.user].map(|text| fill(text, &values));
        messages(&system, user)
    }

    /// The text of this name for an item.
    fn text(&self, name: &str, item: &Item) -> &str {
        // The options of PubMedQA.
        let is_one =
            |option: &Choice| ["yes", "no", "maybe"].contains(&&*option.text.trim().to_lowercase());
        let is_yes_no = item.question().is_some_and(|one| one.options.iter().all(is_one));
        let of_yes_no = || self.file.texts.get(&format!("{name}{YES_NO}"));
        let text = is_yes_no.then(of_yes_no).flatten().or_else(|| self.file.texts.get(name));
        text.map_or("", String::as_str)
    }

    /// The exemplars that a stage shows with a note.
    fn shots(&self, stage: &Stage, note: &Note) -> Vec<&Exemplar> {
        let (Some(kinds), Some(ranking)) = (stage.exemplars, self.settings.choice) else {
            return Vec::new();
        };
        let shots = self.settings.shots.unwrap_or(0) as usize;
        self.exemplars
            .shots(note, &Selection { ranking, shots, kinds, drawn_from: stage.drawn_from })
    }
}

impl System for Staged {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        match self.file.takes {
            ItemKind::Questions => {
                let case = task.question()?;
                let Transcript { rounds, verdict, .. } = self.run_stages(&case)?;
                Ok(case.close(rounds, verdict).into())
            }
            ItemKind::Notes => {
                let case = task.note()?;
                let finding = self.run_stages(&case)?.finding;
                let mut line = note_line(&case, finding);
                // MEDEC's baseline locates nothing where it names no sentence.
                let is_medec = self.file.stages.iter().all(|stage| stage.reply == ReplyKind::Medec);
                line.localisation =
                    line.localisation.filter(|_| !is_medec || line.sentence_id.is_some());
                Ok(line.into())
            }
        }
    }
}
