//! Goes through a file's stages with an item.

use std::sync::Arc;

use super::prompt::Reasons;
use super::reply::ParsedReply;
use super::schema::{Gives, PROMPT, ReplyKind, Stage, SystemFile, Text, YES_NO};
use super::settings::{Compat, Settings};
use super::transcript::Transcript;
use crate::data::{Item, ItemKind, Note, Question};
use crate::diagnosis::Failure;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::{fill, has_placeholder};
use crate::record::{self, FinishReason, ItemLine, Message, SearchPlace};
use crate::systems::case::{Case, Step};
use crate::systems::config::{Given, Slot, passage};
use crate::systems::exemplars::nearest::Nearest;
use crate::systems::exemplars::vectors::no_encoder;
use crate::systems::exemplars::{Exemplars, Ranking, Selection, Shot};
use crate::systems::mediqa_corr::note_line;
use crate::systems::medreflex::settings::Temperatures;
use crate::systems::messages::{messages, numbered, option_lines};
use crate::systems::quote::{PASSAGES, Quotation, quote};
use crate::systems::{System, Task};

/// The folder of the prompt that shows a passage, where a file names no folder.
const PASSAGE_FOLDER: &str = "mediqa_corr";

/// A file with its prompts and settings, ready to work on items.
pub struct Staged {
    /// With its texts in place.
    file: SystemFile,
    settings: Settings,
    slots: Vec<Slot>,
    reasons: Reasons,
    passage: String,
    exemplars: Arc<Exemplars>,
    /// Where a stage shows them.
    nearest: Option<Nearest>,
}

impl Staged {
    pub fn new(
        (file, settings, slots): (&'static SystemFile, &Settings, Vec<Slot>),
        Given { prompts, exemplars }: &Given<'_>,
    ) -> Result<Staged, Failure> {
        let shows = file.stages.iter().any(Stage::shows);
        let encodes = shows && settings.choice == Some(Ranking::Embedding);
        if encodes && exemplars.vectors.is_none() {
            return Err(no_encoder());
        }
        let mut own = file.clone();
        for source in own.named() {
            let name = source.strip_suffix(PROMPT).unwrap_or(source);
            *source = prompts.get(&format!("{}/{name}", file.prompts), &[])?;
        }
        own.check().map_err(|fault| fault.told(&file.source.name, &file.source.text))?;
        let mut searching = file.stages.iter().filter(|stage| stage.search);
        // A file outside has its own prompts beside it, but for this.
        let folder = if file.prompts.is_empty() { PASSAGE_FOLDER } else { &file.prompts };
        let passage = searching.next().map(|_| passage(prompts, folder, false));
        let is_nearest = file.stages.iter().any(|stage| stage.nearest);
        Ok(Staged {
            settings: settings.clone(),
            slots,
            reasons: Reasons::new(prompts)?,
            passage: passage.transpose()?.unwrap_or_default(),
            nearest: is_nearest.then(|| Nearest::new(exemplars)),
            exemplars: Arc::clone(exemplars),
            file: own,
        })
    }

    /// What is known before anything is asked: a suspected sentence.
    fn begin(&self, item: &Item) -> Transcript {
        let mut transcript = Transcript::default();
        if let (Item::Note(note), Some(nearest)) = (item, &self.nearest) {
            transcript.finding.opinion.sentence_id = Some(nearest.usual(note));
        }
        transcript
    }

    fn run_stages<T>(&self, case: &Case<'_, T>) -> Result<Transcript, PanelError> {
        let mut transcript = self.begin(case.task.item);
        for (group, rounds) in self.file.groups() {
            transcript.agreed = false;
            for round in 0..rounds {
                if transcript.agreed {
                    break;
                }
                for stage in &self.file.stages[group.clone()] {
                    if stage.is_there(&self.settings) && transcript.holds(stage.when) {
                        self.run_stage(case, stage, round, &mut transcript)?;
                    }
                }
            }
        }
        Ok(transcript)
    }

    fn run_stage<T>(
        &self,
        case: &Case<'_, T>,
        stage: &Stage,
        round: u32,
        transcript: &mut Transcript,
    ) -> Result<(), PanelError> {
        let found = self.look_up(case, stage, transcript)?;
        if stage.gives == Gives::Veto && found.is_none() {
            return Ok(());
        }
        let asked = self.ask(case, (stage, found.as_ref()), round, transcript)?;
        transcript.hear(stage, &asked);
        transcript.steps += 1;
        Ok(())
    }

    fn there(&self) -> impl Iterator<Item = &Stage> {
        self.file.stages.iter().filter(move |stage| stage.is_there(&self.settings))
    }

    /// What a stage's search finds; `None` where it finds nothing, or there is none.
    fn look_up<T>(
        &self,
        case: &Case<'_, T>,
        stage: &Stage,
        transcript: &mut Transcript,
    ) -> Result<Option<Quotation>, PanelError> {
        let (Item::Note(note), true) = (case.task.item, stage.search) else { return Ok(None) };
        let sentence = transcript.finding.opinion.sentence_id.map(|id| &note.sentences[id]);
        let longest = || longest_word(sentence.map_or("", String::as_str)).to_owned();
        let query = transcript.word.clone().unwrap_or_else(longest);
        let place = SearchPlace { round: 0, step: transcript.searches };
        let found = case.search(place, &query, 1, 1)?;
        transcript.searches += 1;
        Ok((!found.shown.is_empty()).then(|| Quotation::new(&found, &self.passage)))
    }

    /// A text that prompts quote, of the settings' choice, with the values filled in; nothing where one that it quotes is empty.
    fn told(&self, text: &Text, item: &Item, values: &[(&str, String)]) -> String {
        let text = match text {
            Text::One(text) => Some(text),
            Text::By { by, words } => {
                let word = self.settings.word(by);
                let is_yes_no = item.question().is_some_and(is_yes_or_no);
                let of_yes_no = words.get(&format!("{word}{YES_NO}")).filter(|_| is_yes_no);
                of_yes_no.or_else(|| words.get(&word))
            }
        };
        let text = text.map_or("", String::as_str);
        let mut empty = values.iter().filter(|(_, value)| value.is_empty());
        let is_left_out = empty.any(|(name, _)| has_placeholder(text, name));
        if is_left_out { String::new() } else { fill(text, values) }
    }

    fn ask<T>(
        &self,
        case: &Case<'_, T>,
        (stage, found): (&Stage, Option<&Quotation>),
        round: u32,
        transcript: &Transcript,
    ) -> Result<Vec<Asked<ParsedReply>>, PanelError> {
        let item = case.task.item;
        let agents = self.agents(stage);
        let samples = self.settings.samples.unwrap_or(1);
        let (role, round) = match item {
            Item::Question(_) => {
                (transcript.stage_of(stage, agents.len() * samples as usize), transcript.steps)
            }
            Item::Note(_) => (record::Stage::Final, round),
        };
        let grammar = stage.grammar(item, &self.settings);
        let step = Step::new(role, round, stage.name.as_str(), grammar);
        let is_published = self.settings.temperatures != Some(Temperatures::Model);
        let mut calls: Vec<Call> = Vec::new();
        for (member, agent) in agents {
            let messages = quote(self.messages(stage, item, agent, transcript)?, found);
            calls.extend((0..samples).map(|sample| {
                let mut call = case.call(&step, member, agent, messages.clone());
                call.key.sample = sample;
                call.temperature = stage.temperature.filter(|_| is_published);
                call
            }));
        }
        let read = |text: &str, finish_reason: FinishReason| {
            stage.read(text, finish_reason, item, &self.settings)
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
        stage: &Stage,
        item: &Item,
        agent: &str,
        transcript: &Transcript,
    ) -> Result<Vec<Message>, PanelError> {
        let mut values: Vec<(&str, String)> = vec![
            ("agent", agent.to_owned()),
            ("said", transcript.said.join("\n\n")),
            ("own", transcript.own(agent)),
            ("others", transcript.others(agent)),
        ];
        let id = transcript.finding.opinion.sentence_id;
        match item {
            Item::Question(question) => {
                values.push(("question", question.question.clone()));
                values.push(("options", option_lines(question)));
            }
            Item::Note(note) => {
                let sentence = id.and_then(|id| note.sentences.get(id)).cloned();
                values.push(("note", numbered(note)));
                values.push(("text", note.text.clone()));
                values.push(("id", id.map_or(String::new(), |id| id.to_string())));
                values.push(("sentence", sentence.unwrap_or_default()));
            }
        }
        values.extend(stage.search.then(|| ("passages", PASSAGES.clone())));
        // Of a stage that was left out, nothing.
        values.extend(self.file.stages.iter().map(|one| {
            let name = one.name.as_str();
            (name, transcript.stages.get(name).cloned().unwrap_or_default())
        }));
        let texts = self.file.texts.iter();
        let texts = texts.map(|(name, text)| (name.as_str(), self.told(text, item, &values)));
        let texts: Vec<(&str, String)> = texts.collect();
        values.extend(texts.iter().cloned());
        let mut turns = Vec::new();
        if let Item::Note(note) = item {
            let shots = self.shots(stage, note, id)?;
            match stage.example.is_empty() {
                true => turns = self.reasons.turns(stage, &shots, &texts),
                false => values.extend(self.reasons.blocks(stage, &shots)),
            }
        }
        let [system, user] = [&stage.system, &stage.user].map(|text| fill(text, &values));
        let mut messages = messages(&system, user);
        let last = messages.len() - 1;
        messages.splice(last..last, turns);
        Ok(messages)
    }

    /// The exemplars that a stage shows with a note, of which this sentence is suspected.
    fn shots(
        &self,
        stage: &Stage,
        note: &Note,
        id: Option<usize>,
    ) -> Result<Vec<Shot<'_>>, PanelError> {
        let shots = stage.shots.or(self.settings.shots).unwrap_or(0) as usize;
        let Some(ranking) = self.settings.choice else { return Ok(Vec::new()) };
        match (stage.exemplars, &self.nearest, id) {
            (Some(kinds), ..) => {
                let choice = Selection { ranking, shots, kinds, drawn_from: stage.drawn_from };
                self.exemplars.shots(note, &choice)
            }
            (None, Some(nearest), Some(id)) if stage.nearest => {
                nearest.shots(&self.exemplars, ranking, (note, &note.sentences[id]), shots)
            }
            _ => Ok(Vec::new()),
        }
    }
}

impl System for Staged {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        match self.file.takes {
            ItemKind::Questions => {
                let case =
                    task.question()?.as_written(self.settings.mab_compat == Some(Compat::On));
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

    /// With the longest sentence as the suspected one.
    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let stage = self.there().find(|stage| stage.search)?;
        let (_, agent) = self.agents(stage).into_iter().next()?;
        let mut transcript = self.begin(item);
        if let Item::Note(note) = item {
            let sentences = note.sentences.iter().enumerate();
            let longest = sentences.max_by_key(|(_, sentence)| sentence.len());
            transcript.finding.opinion.sentence_id = longest.map(|(id, _)| id);
        }
        let messages = self.messages(stage, item, agent, &transcript).ok()?;
        let chars: usize = messages.iter().map(|message| message.content.chars().count()).sum();
        Some(chars + passage_chars)
    }
}

/// Whether a question's options are those of PubMedQA.
fn is_yes_or_no(question: &Question) -> bool {
    let mut options = question.options.iter().map(|option| option.text.trim().to_lowercase());
    options.all(|option| ["yes", "no", "maybe"].contains(&option.as_str()))
}

/// The longest word of a sentence, the first of several.
pub fn longest_word(sentence: &str) -> &str {
    let words = sentence.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let length = |word: &str| word.chars().count();
    words.fold("", |best, word| if length(word) > length(best) { word } else { best })
}
