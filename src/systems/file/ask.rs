//! Goes through a file's stages with an item.

use std::sync::Arc;

use super::note::{Quoted, refuse_missing};
use super::reply::ParsedReply;
use super::schema::{Gives, PROMPT, Place, Query, ReplyKind, Stage, SystemFile};
use super::settings::Settings;
use super::text::NamedText;
use super::transcript::Transcript;
use crate::data::{Item, ItemKind};
use crate::diagnosis::Failure;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::{PromptError, PromptSet, fill, has_placeholder};
use crate::record::{self, FinishReason, ItemLine, Message};
use crate::systems::case::{Case, Step};
use crate::systems::config::{Slot, passage};
use crate::systems::exemplars::nearest::{By, Nearest};
use crate::systems::exemplars::prompt::{Prompt, Templates, difference};
use crate::systems::exemplars::{Choice, Exemplars};
use crate::systems::mediqa_corr::note_line;
use crate::systems::messages::{fill_question, messages};
use crate::systems::quote::{Found, PASSAGES, quote};
use crate::systems::{Opening, System, Task};

/// The folder of the prompt that shows a passage, where a file names no folder.
const PASSAGE_FOLDER: &str = "mediqa_corr";

/// A file with its prompts and settings, ready to work on items.
pub struct Staged {
    file: &'static SystemFile,
    pub(super) settings: Settings,
    slots: Vec<Slot>,
    /// Of each stage.
    prompts: Vec<Prompt>,
    texts: Vec<NamedText>,
    pub(super) expert: String,
    pub(super) passage: String,
    pub(super) exemplars: Arc<Exemplars>,
    /// Where a stage shows them.
    nearest: Option<Nearest>,
}

impl Staged {
    /// # Errors
    /// A prompt that is missing or lacks what it must quote; settings that need a file that was not given.
    pub fn new(
        (file, settings, slots): (&'static SystemFile, &Settings, Vec<Slot>),
        prompts: &PromptSet,
        exemplars: &Arc<Exemplars>,
    ) -> Result<Staged, Failure> {
        refuse_missing(settings, &file.stages, exemplars)?;
        let mut own = file.clone();
        own.inline(|source| {
            let name = source.strip_suffix(PROMPT).unwrap_or(source);
            prompts.get(&format!("{}/{name}", file.prompts), &[])
        })?;
        own.check().map_err(|fault| fault.told(&file.source.name, &file.source.text))?;
        let prompt = |stage: Stage| {
            let form = stage.form(settings);
            let Stage { system, user, example, .. } = stage;
            let example = Some(example).filter(|example| !example.is_empty());
            Prompt::new(prompts, Templates { system, user, example }, form)
        };
        let mut searching = file.stages.iter().filter(|stage| stage.search.is_some());
        // A file outside has its own prompts beside it, but for this.
        let folder = if file.prompts.is_empty() { PASSAGE_FOLDER } else { &file.prompts };
        let passage = searching.next().map(|_| passage(prompts, folder, false));
        let shows = file.stages.iter().any(|stage| stage.nearest);
        Ok(Staged {
            file,
            settings: settings.clone(),
            slots,
            prompts: own.stages.into_iter().map(prompt).collect::<Result<_, PromptError>>()?,
            texts: own.texts.into_iter().map(|text| NamedText::new(text, settings)).collect(),
            expert: own.expert.unwrap_or_default(),
            passage: passage.transpose()?.unwrap_or_default(),
            nearest: shows.then(|| Nearest::new(exemplars)),
            exemplars: exemplars.clone(),
        })
    }

    /// What is known before anything is asked: words of `--spans`, and a suspected sentence.
    fn begin(&self, item: &Item) -> Result<Transcript, PanelError> {
        let mut transcript = Transcript::default();
        let Item::Note(note) = item else { return Ok(transcript) };
        let spans = self.exemplars.spans.as_ref().filter(|_| self.settings.word("span") == "file");
        let words = spans.and_then(|spans| spans.get(&note.id));
        let words = words.filter(|words| !words.trim().is_empty());
        transcript.quoted = words.and_then(|words| Quoted::of(note, words, Place::First));
        transcript.finding.opinion.sentence_id =
            match (&self.nearest, &*self.settings.word("candidate")) {
                (Some(nearest), "position") => Some(nearest.usual(note)),
                (Some(_), "scorer") => Some(self.exemplars.suspect(note)?),
                _ => None,
            };
        Ok(transcript)
    }

    fn run_stages<T>(&self, case: &Case<'_, T>) -> Result<Transcript, PanelError> {
        let mut transcript = self.begin(case.task.item)?;
        let stages: Vec<(&'static Stage, &Prompt)> =
            self.file.stages.iter().zip(&self.prompts).collect();
        for (group, rounds) in self.file.groups() {
            transcript.agreed = false;
            for round in 0..rounds {
                if transcript.agreed {
                    break;
                }
                for (stage, prompt) in &stages[group.clone()] {
                    if stage.is_there(&self.settings) && transcript.holds(stage.when) {
                        self.run_stage(case, (stage, prompt), round, &mut transcript)?;
                    }
                }
            }
        }
        Ok(transcript)
    }

    fn run_stage<T>(
        &self,
        case: &Case<'_, T>,
        (stage, prompt): (&'static Stage, &Prompt),
        round: u32,
        transcript: &mut Transcript,
    ) -> Result<(), PanelError> {
        let item = case.task.item;
        let found = self.look_up(case, stage, transcript)?;
        if stage.gives == Gives::Veto && found.is_none() {
            return Ok(());
        }
        if stage.reply == ReplyKind::Option {
            transcript.offer(self.settings.number("options").unwrap_or(4) as usize);
        }
        let asked = self.ask(case, (stage, prompt, found.as_ref()), round, transcript)?;
        transcript.hear(stage, &asked, item, self.settings.is_compat());
        if let (Item::Note(note), Gives::Opinion) = (item, stage.gives) {
            self.doubt(transcript, note)?;
        }
        transcript.steps += 1;
        Ok(())
    }

    /// The stages that the settings have, with their prompts.
    fn there(&self) -> impl Iterator<Item = (&'static Stage, &Prompt)> {
        let stages = self.file.stages.iter().zip(&self.prompts);
        stages.filter(move |(stage, _)| stage.is_there(&self.settings))
    }

    /// For what a stage searches.
    pub(super) fn query(&self, stage: &Stage) -> Option<Query> {
        stage.search.filter(|_| self.settings.word("evidence") != "off")
    }

    fn ask<T>(
        &self,
        case: &Case<'_, T>,
        (stage, prompt, found): (&'static Stage, &Prompt, Option<&Found>),
        round: u32,
        transcript: &Transcript,
    ) -> Result<Vec<Asked<ParsedReply>>, PanelError> {
        let item = case.task.item;
        let agents = self.agents(stage);
        let samples = self.settings.number("samples").unwrap_or(1);
        let (role, round) = match item {
            Item::Question(_) => {
                (transcript.stage_of(stage, agents.len() * samples as usize), transcript.steps)
            }
            Item::Note(_) => (record::Stage::Final, round),
        };
        let letters: Vec<String> = match (item, stage.reply) {
            (Item::Note(note), ReplyKind::Sentence) => {
                (0..note.sentences.len()).map(|id| id.to_string()).collect()
            }
            _ => ('A'..).take(transcript.options.len()).map(String::from).collect(),
        };
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        let shape = stage.shape(item, &self.settings, &letters);
        let step = Step::new(role, round, &stage.name, shape);
        let is_published = self.settings.word("temperatures") != "model";
        let mut calls: Vec<Call> = Vec::new();
        for (member, agent) in agents {
            let mut messages = self.messages((stage, prompt), item, agent, transcript)?;
            if stage.search.is_some() {
                messages = quote(messages, found);
            }
            calls.extend((0..samples).map(|sample| {
                let mut call = case.call(&step, member, agent, messages.clone());
                call.key.sample = sample;
                call.temperature = stage.temperature.filter(|_| is_published);
                call
            }));
        }
        let read = |text: &str, finish_reason: FinishReason| {
            stage.read(text, finish_reason, item, &self.settings, &letters)
        };
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
        let slots = self.slots.iter().map(|slot| slot.agent.as_str()).enumerate();
        slots.filter(|(_, agent)| stage.asks(agent)).collect()
    }

    fn messages(
        &self,
        (stage, prompt): (&Stage, &Prompt),
        item: &Item,
        agent: &str,
        transcript: &Transcript,
    ) -> Result<Vec<Message>, PanelError> {
        let place = self.agents(stage).iter().position(|(_, one)| *one == agent);
        let word = place.and_then(|place| transcript.words.get(place));
        let mut values: Vec<(&str, String)> = vec![
            ("agent", agent.to_owned()),
            ("said", transcript.said.join("\n\n")),
            ("own", transcript.own(agent)),
            ("others", transcript.others(agent)),
            ("word", word.map_or(agent, String::as_str).to_owned()),
        ];
        if stage.search.is_some() {
            values.push(("passages", PASSAGES.clone()));
        }
        // Of a stage that was left out, nothing.
        values.extend(self.file.stages.iter().map(|one| {
            let name = one.name.as_str();
            (name, transcript.stages.get(name).cloned().unwrap_or_default())
        }));
        let texts = self.texts.iter();
        let texts = texts
            .map(|named| (named.name.as_str(), self.filled(named, item, (transcript, &values))));
        let texts: Vec<(&str, String)> = texts.collect();
        values.extend(texts);
        if let Item::Note(note) = item {
            let id = transcript.finding.opinion.sentence_id;
            let sentence = id.and_then(|id| note.sentences.get(id)).cloned();
            values.push(("id", id.map_or(String::new(), |id| id.to_string())));
            values.push(("sentence", sentence.unwrap_or_default()));
            let options = ('A'..).zip(&transcript.options);
            let options: Vec<String> =
                options.map(|(letter, option)| format!("{letter}: {option}")).collect();
            values.push(("options", options.join("\n")));
        }
        let more: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match item {
            Item::Question(question) => {
                let [system, user] = [&prompt.templates.system, &prompt.templates.user]
                    .map(|template| fill_question(template, question, &more));
                Ok(messages(&system, user))
            }
            Item::Note(note) => {
                let shots = stage.shots.or(self.settings.number("shots")).unwrap_or(0) as usize;
                let choice = stage.exemplars.map(|kinds| Choice {
                    ranking: self.settings.ranking(),
                    shots,
                    kinds,
                    drawn_from: stage.drawn_from,
                });
                let sentence =
                    transcript.finding.opinion.sentence_id.map(|id| &*note.sentences[id]);
                let mut shots = match (choice, &self.nearest, sentence) {
                    (Some(choice), ..) => self.exemplars.shots(note, &choice)?,
                    (None, Some(nearest), Some(sentence)) if stage.nearest => {
                        let clusters = self.settings.word("clusters") == "on";
                        let by = By { ranking: self.settings.ranking(), clusters };
                        nearest.shots(&self.exemplars, by, (note, sentence), shots)?
                    }
                    _ => Vec::new(),
                };
                for shot in &mut shots {
                    // An exemplar's own words are those that its correction changes.
                    let error = shot.exemplar.error();
                    let span = error.map(|one| difference(&one.sentence, &one.correction).0);
                    let own = |named: &NamedText| match has_placeholder(&named.text, "span") {
                        true => span.as_ref().map(|span| fill(&named.text, &[("span", span)])),
                        false => Some(named.text.clone()),
                    };
                    let texts = self.texts.iter();
                    let texts =
                        texts.map(|named| (named.name.as_str(), own(named).unwrap_or_default()));
                    shot.more.extend(texts);
                }
                let quoted = transcript.quoted.as_ref().filter(|_| stage.blanked);
                let note = quoted.map_or(note, |quoted| &quoted.blanked);
                Ok(prompt.messages(&shots, note, &more))
            }
        }
    }
}

impl System for Staged {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let is_compat = self.settings.is_compat();
        match self.file.takes {
            ItemKind::Questions => {
                let case = task.question()?.as_written(is_compat);
                let Transcript { rounds, verdict, .. } = self.run_stages(&case)?;
                Ok(case.close(rounds, verdict).into())
            }
            ItemKind::Notes => {
                let case = task.note()?.as_written(is_compat);
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

    /// With the longest sentence as the suspected one.
    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let (stage, prompt) = self.there().find(|(stage, _)| self.query(stage).is_some())?;
        let (_, agent) = self.agents(stage).into_iter().next()?;
        let mut transcript = self.begin(item).ok()?;
        if let Item::Note(note) = item {
            let sentences = note.sentences.iter().enumerate();
            let longest = sentences.max_by_key(|(_, sentence)| sentence.len());
            transcript.finding.opinion.sentence_id = longest.map(|(id, _)| id);
        }
        let messages = self.messages((stage, prompt), item, agent, &transcript).ok()?;
        let chars: usize = messages.iter().map(|message| message.content.chars().count()).sum();
        Some(chars + stage.passages as usize * passage_chars)
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let is_own = item.question().is_some() == (self.file.takes == ItemKind::Questions);
        let first = self.there().next().filter(|_| is_own)?;
        let (member, agent) = self.agents(first.0).into_iter().next()?;
        let messages = self.messages(first, item, agent, &self.begin(item).ok()?).ok()?;
        Some(vec![Opening { member, messages: quote(messages, None) }])
    }
}
