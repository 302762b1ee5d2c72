//! Goes through a file's stages with an item.

use std::sync::Arc;

use super::check::{OF_NOTE, OF_QUESTION};
use super::prompt::Reasons;
use super::reply::ParsedReply;
use super::schema::{PROMPT, ReplyKind, StageEntry, SystemFile, YES_NO};
use super::settings::Settings;
use super::transcript::Transcript;
use crate::data::{Choice, Item, ItemKind};
use crate::diagnosis::Failure;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::fill;
use crate::record::{self, FinishReason, ItemLine, Message};
use crate::systems::case::{Case, Step};
use crate::systems::config::Given;
use crate::systems::exemplars::{Exemplars, Selection};
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
        stage: &StageEntry,
        round: u32,
        transcript: &Transcript,
    ) -> Result<Vec<Asked<ParsedReply>>, PanelError> {
        let item = case.task.item;
        // In panel order.
        let agents = self.file.agents.iter().map(String::as_str).enumerate();
        let agents: Vec<_> = agents.filter(|(_, agent)| stage.asks(agent)).collect();
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

    fn messages(
        &self,
        stage: &StageEntry,
        item: &Item,
        agent: &str,
        transcript: &Transcript,
    ) -> Vec<Message> {
        let (agent, said) = (agent.to_owned(), transcript.said.join("\n\n"));
        let mut values: Vec<(&str, String)> = match item {
            Item::Question(question) => {
                let told = [question.question.clone(), option_lines(question), agent, said];
                OF_QUESTION.into_iter().zip(told).collect()
            }
            Item::Note(note) => {
                let id = transcript.finding.opinion.sentence_id;
                let sentence = id.and_then(|id| note.sentences.get(id)).cloned();
                let id = id.map_or(String::new(), |id| id.to_string());
                let (note, text) = (numbered(note), note.text.clone());
                let told = [note, text, id, sentence.unwrap_or_default(), agent, said];
                OF_NOTE.into_iter().zip(told).collect()
            }
        };
        if let (Item::Note(note), Some(kinds), Some(ranking)) =
            (item, stage.exemplars, self.settings.choice)
        {
            let shots = self.settings.shots.unwrap_or(0) as usize;
            let selection = Selection { ranking, shots, kinds, drawn_from: stage.drawn_from };
            let shown = self.exemplars.choose(note, &selection).into_iter();
            let shown: Vec<_> = shown.map(|place| &self.exemplars.notes[place]).collect();
            values.extend(self.reasons.blocks(stage, &shown));
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
}

impl System for Staged {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        match self.file.takes {
            ItemKind::Questions => {
                let case = task.question()?;
                let Transcript { rounds, verdict, .. } = self.run_stages(&case)?;
                Ok(ItemLine::Answer(case.close(rounds, verdict)))
            }
            ItemKind::Notes => {
                let case = task.note()?;
                let finding = self.run_stages(&case)?.finding;
                let mut line = note_line(&case, finding);
                // MEDEC's baseline locates nothing where it names no sentence.
                let is_medec = self.file.stages.iter().all(|stage| stage.reply == ReplyKind::Medec);
                line.localisation =
                    line.localisation.filter(|_| !is_medec || line.sentence_id.is_some());
                Ok(ItemLine::Note(line))
            }
        }
    }
}
