//! What the systems of the shared task MEDIQA-CORR 2024 have in common (§4 of the paper of each): settings, exemplars, calls, log lines.

pub mod edinburgh;
pub mod ikim;
pub mod knowlab;
pub mod prompted;
pub mod searching;
pub mod staged;
mod words;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::words::{Words, choice, words};
use super::case::{Case, Step};
use super::config::{self, SOLO, SearchSettings, Slot};
use super::decoding::{Decoding, Shape};
use super::exemplars::reply::{Form, Judgement};
use super::exemplars::vectors::no_encoder;
use super::exemplars::{Choice, Exemplars, Kinds, Opinion, Ranking};
use super::medreflex::settings::Temperatures;
use super::settings::whole;
use super::{Opening, System, Task, form};
use crate::data::{Item, Note};
use crate::diagnosis::Failure;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::PromptSet;
use crate::record::{
    Basis, DetectionLine, Flag, ItemLine, LocalisationLine, Message, NO_SENTENCE, Source, Stage,
};
use crate::retrieval::Rerank;

/// What stands in a prompt for words that were blanked out.
const BLANK: &str = "____";

/// Settings of all these systems, flattened into each system's. Serde cannot refuse unknown keys beside flattened ones, so
/// `settings::replace` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Common {
    /// Exemplars in a prompt.
    #[serde(deserialize_with = "whole::<0, 64, _, _>")]
    pub shots: usize,
    /// How exemplars are ranked.
    pub choice: Ranking,
    pub temperatures: Temperatures,
    #[serde(flatten)]
    pub decoding: Decoding,
}

/// A system's own settings, and the common ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct With<T> {
    #[serde(flatten)]
    pub own: T,
    #[serde(flatten)]
    pub common: Common,
}

/// A system's own settings, and the system that they configure.
pub trait Design: Send + Sync {
    fn agents(&self) -> Vec<Slot> {
        vec![Slot::new(SOLO, 0)]
    }

    /// Calls on a note, at most.
    fn calls(&self) -> u32;

    /// Whether it needs an encoder even where notes are not ranked by their vectors.
    fn needs_vectors(&self) -> bool {
        false
    }

    fn searches(&self) -> bool {
        false
    }

    /// # Errors
    /// An overridden prompt that lacks a placeholder; settings that need a file that was not given.
    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure>;
}

impl<D: Design> config::Settings for With<D> {
    fn slots(&self) -> Vec<Slot> {
        self.own.agents()
    }

    fn max_calls(&self) -> u32 {
        self.own.calls()
    }

    fn search(&self) -> Option<SearchSettings> {
        self.own.searches().then_some(SearchSettings { rerank: Rerank::Off, labels: false })
    }

    fn build(
        &self,
        prompts: &PromptSet,
        exemplars: &Arc<Exemplars>,
    ) -> Result<Box<dyn System>, Failure> {
        let needs_vectors = self.own.needs_vectors() || self.common.choice == Ranking::Embedding;
        if needs_vectors && exemplars.vectors.is_none() {
            return Err(no_encoder());
        }
        let kit = Kit { exemplars: exemplars.clone(), common: self.common.clone() };
        self.own.solver(prompts, kit)
    }
}

/// What every system has: exemplars and the common settings.
pub struct Kit {
    pub exemplars: Arc<Exemplars>,
    pub common: Common,
}

/// One call of a system.
pub struct Request {
    /// Index into the panel's members.
    pub member: usize,
    pub agent: String,
    pub purpose: &'static str,
    pub sample: u32,
    /// The published one.
    pub temperature: f32,
    pub messages: Vec<Message>,
}

impl Request {
    pub fn new(purpose: &'static str, temperature: f32, messages: Vec<Message>) -> Request {
        Request { member: 0, agent: SOLO.to_owned(), purpose, sample: 0, temperature, messages }
    }
}

impl Kit {
    /// Exemplars of these kinds, as the settings say how many and how ranked.
    pub fn choice(&self, kinds: Kinds) -> Choice {
        let Common { shots, choice, .. } = self.common;
        Choice { ranking: choice, shots, kinds, drawn_from: None }
    }

    fn call(&self, case: &Case<'_, Note>, request: Request, shape: Shape) -> Call {
        let step = Step::new(Stage::Final, 0, request.purpose, shape);
        let mut call = case.call(&step, request.member, request.agent, request.messages);
        call.key.sample = request.sample;
        call.temperature = self.common.temperatures.choose(request.temperature);
        call
    }

    /// Asks for a judgement of the note, in this form.
    pub fn judge(
        &self,
        case: &Case<'_, Note>,
        request: Request,
        form: &Form,
    ) -> Result<Asked<Judgement>, PanelError> {
        let shape = form.shape(case.item, &self.common.decoding);
        let call = self.call(case, request, shape);
        case.ask(call, |text, finish_reason| form.read(text, finish_reason, case.item))
    }

    /// Asks for several at once.
    pub fn judge_all(
        &self,
        case: &Case<'_, Note>,
        requests: Vec<Request>,
        form: &Form,
    ) -> Result<Vec<Asked<Judgement>>, PanelError> {
        let shape = form.shape(case.item, &self.common.decoding);
        let calls = requests.into_iter().map(|request| self.call(case, request, shape.clone()));
        case.ask_all(calls, |text, finish_reason| form.read(text, finish_reason, case.item))
    }

    /// Asks for words in a JSON field, `most` of them at most; none where the reply could not be read.
    pub fn words(
        &self,
        case: &Case<'_, Note>,
        request: Request,
        key: &'static str,
        most: usize,
    ) -> Result<Asked<Words>, PanelError> {
        let shape = match most {
            1 => Shape::record(vec![(key, self.common.decoding.string())]),
            _ => Shape::record(vec![(key, form::array(self.common.decoding.string(), 1, most))]),
        };
        let call = self.call(case, request, shape);
        case.ask(call, |text, finish_reason| words(text, finish_reason, key, most))
    }

    /// Asks for words of the note; what the note does not hold counts as unread.
    pub fn quoted(
        &self,
        case: &Case<'_, Note>,
        request: Request,
        key: &'static str,
        is_held: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, PanelError> {
        let shape = Shape::record(vec![(key, self.common.decoding.string())]);
        let call = self.call(case, request, shape);
        let asked = case.ask(call, |text, finish_reason| {
            let (words, parse) = words(text, finish_reason, key, 1);
            let is_read = words.words.first().is_some_and(|word| is_held(word));
            (words, parse.if_read(is_read))
        })?;
        Ok(asked.value.words.into_iter().next().filter(|word| is_held(word)))
    }

    /// Asks for one of these words; none where the reply names none.
    pub fn one_of(
        &self,
        case: &Case<'_, Note>,
        request: Request,
        key: &'static str,
        choices: &[&str],
    ) -> Result<Asked<Words>, PanelError> {
        let shape = Shape::record(vec![(key, form::choice(choices))]);
        let call = self.call(case, request, shape);
        case.ask(call, |text, finish_reason| choice(text, finish_reason, key, choices))
    }
}

/// A system's result on a note.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub opinion: Opinion,
    /// The opinions that it was made of, each with its agent.
    pub heard: Vec<(String, Opinion)>,
}

impl From<&Asked<Judgement>> for Opinion {
    fn from(Asked { call, value }: &Asked<Judgement>) -> Opinion {
        let Judgement { flag, sentence_id, correction, .. } = value;
        Opinion {
            flag: Flag::on(call.basis(), *flag),
            sentence_id: *sentence_id,
            correction: correction.clone(),
        }
    }
}

/// The opinion of a model that fills `own`, blanked out of sentence `id`, in again: another word is an error and its correction.
fn filled_in(
    basis: Option<Basis>,
    word: Option<&str>,
    own: &str,
    id: usize,
    correct: impl Fn(&str) -> String,
) -> Opinion {
    let Some(word) = word else { return Opinion::default() };
    let is_other = word.to_lowercase() != own.to_lowercase();
    Opinion {
        flag: Flag::on(basis, Some(is_other)),
        sentence_id: is_other.then_some(id),
        correction: is_other.then(|| correct(word)),
    }
}

impl Finding {
    /// The opinion of the only agent.
    pub fn alone(opinion: impl Into<Opinion>) -> Finding {
        let opinion = opinion.into();
        Finding { heard: vec![(SOLO.to_owned(), opinion.clone())], opinion }
    }
}

/// A system's protocol.
pub trait Solve: Send + Sync {
    /// # Errors
    /// A call or a search that failed.
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError>;

    /// The first prompt.
    ///
    /// # Errors
    /// A text that the encoder cannot encode.
    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError>;

    /// The prompt that quotes passages, without them, and how many it quotes at most; `None` where none does.
    ///
    /// # Errors
    /// A text that the encoder cannot encode.
    fn quoting(&self, _note: &Note) -> Result<Option<(Vec<Message>, usize)>, PanelError> {
        Ok(None)
    }
}

/// A system of the shared task.
pub struct Solver<S>(pub S);

impl<S: Solve> System for Solver<S> {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let Finding { opinion, heard } = self.0.solve(&case)?;
        let mut line = case.open();
        let source = if heard.len() > 1 { Source::Vote } else { Source::Single };
        let agents: Vec<String> = heard.iter().map(|(agent, _)| agent.clone()).collect();
        let confidences = vec![None; heard.len()];
        line.flag = opinion.flag;
        line.detection = Some(DetectionLine {
            source,
            flags: heard.iter().map(|(_, one)| one.flag.said()).collect(),
            agents: agents.clone(),
            confidences: confidences.clone(),
        });
        if opinion.flag.has_error() {
            line.sentence_id = opinion.sentence_id;
            line.exact_sentence_id = opinion.sentence_id;
            let sentence = opinion.sentence_id.and_then(|id| case.item.sentences.get(id));
            line.sentence = sentence.cloned().unwrap_or_default();
            line.correction = opinion.correction;
            let said = |one: &Opinion| match one.sentence_id {
                Some(id) => id.to_string(),
                None if one.flag.is_clear() => NO_SENTENCE.to_owned(),
                None => String::new(),
            };
            line.localisation = Some(LocalisationLine {
                source,
                agents,
                opinions: heard.iter().map(|(_, one)| said(one)).collect(),
                sentence_ids: heard.iter().map(|(_, one)| one.sentence_id).collect(),
                confidences,
            });
        }
        line.calls = case.calls();
        Ok(line.into())
    }

    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let (messages, passages) = self.0.quoting(item.note()?).ok()??;
        let chars: usize = messages.iter().map(|message| message.content.chars().count()).sum();
        Some(chars + passages * passage_chars)
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let messages = self.0.first(item.note()?).ok()?;
        Some(vec![Opening { member: 0, messages }])
    }
}
