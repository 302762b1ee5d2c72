//! One question or note in one run of a system: makes its calls, counts them, and builds its log line.

use std::cell::{Cell, RefCell};

use itertools::Itertools;
use serde::{Serialize, Serializer};

use crate::data::{Item, Note, Question};
use crate::diagnosis::Failure;
use crate::panel::seed::call_seed;
use crate::panel::{Answered, Asked, Call, Panel, PanelError};
use crate::record::{
    AnswerLine, Basis, CallKey, CallLine, FinishReason, Grammar, ItemLine, Message, NoteLine,
    Parse, RoundLine, SearchKey, SearchLine, SearchPlace, Stage,
};
use crate::retrieval::SearchRequest;

mod reading;
#[cfg(test)]
mod tests;

/// An item of a run, and the panel that works on it.
pub struct Task<'a> {
    pub panel: &'a Panel,
    /// The name of the items' file.
    pub dataset: &'a str,
    pub item: &'a Item,
    pub run: u32,
}

/// A question or a note that a system works on.
pub struct Case<'a, T = Question> {
    pub task: &'a Task<'a>,
    pub item: &'a T,
    calls: Cell<u32>,
    /// Of a reply with an answer that could be read; a question without one has no answer.
    basis: Cell<Option<Basis>>,
    /// Texts that prompts quote and replies may repeat: the item's, and what replies said.
    own: RefCell<Vec<String>>,
}

/// What the calls of one step of a protocol have in common.
pub struct Step {
    pub stage: Stage,
    pub round: u32,
    pub purpose: String,
    pub grammar: Grammar,
}

impl Step {
    pub fn new(stage: Stage, round: u32, purpose: impl Into<String>, grammar: Grammar) -> Step {
        Step { stage, round, purpose: purpose.into(), grammar }
    }
}

/// A value parsed from a reply, as the call's log line has it.
pub trait Parsed: Serialize {
    /// The field that holds what the protocol goes on with where the reply gave nothing. The log then has it under `assumed`, so that no
    /// record says what its reply does not.
    fn assumed(&self) -> Option<&'static str> {
        None
    }

    /// The letter that answers the question, where the reply should give one; empty where it gave none.
    fn answer(&mut self) -> Option<&mut String> {
        None
    }

    /// The correction of a sentence of the note, where the reply gave one.
    fn correction(&mut self) -> Option<&mut Option<String>> {
        None
    }
}

/// A record of one field.
#[derive(Clone, Debug)]
pub struct One<T> {
    key: &'static str,
    pub said: T,
    is_assumed: bool,
}

impl<T> One<T> {
    /// What was read of a reply, under a key.
    pub fn of(key: &'static str, (said, parse): (T, Parse)) -> (One<T>, Parse) {
        (One { key, said, is_assumed: false }, parse)
    }

    /// The same where the protocol goes on with a value that the reply may not give, see [`Parsed::assumed`].
    pub fn or_assumed(key: &'static str, (said, parse): (T, Parse)) -> (One<T>, Parse) {
        (One { key, said, is_assumed: true }, parse)
    }
}

impl<T: Serialize> Serialize for One<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([(self.key, &self.said)])
    }
}

impl<T: Serialize> Parsed for One<T> {
    fn assumed(&self) -> Option<&'static str> {
        self.is_assumed.then_some(self.key)
    }
}

/// A system's answer to a question.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// One letter; empty where no agent gave one.
    pub answer: String,
    pub team_confidence: f64,
    pub rationale: String,
    /// Whether another answer had as many votes, and the order of agents decided.
    pub tie: bool,
}

impl Task<'_> {
    pub fn question(&self) -> Result<Case<'_>, PanelError> {
        let Item::Question(question) = self.item else {
            return Err(self.of_another_kind());
        };
        let options = question.options.iter().map(|option| &option.text);
        let own = std::iter::once(&question.question).chain(options);
        Ok(Case::new(self, question, own.cloned().collect()))
    }

    pub fn note(&self) -> Result<Case<'_, Note>, PanelError> {
        let Item::Note(note) = self.item else { return Err(self.of_another_kind()) };
        Ok(Case::new(self, note, [std::slice::from_ref(&note.text), &note.sentences].concat()))
    }

    fn of_another_kind(&self) -> PanelError {
        let item = self.item.id();
        let problem = format!("item {item} is not of the kind that the system works on");
        Failure::refused(problem).into()
    }

    pub fn failure(&self, error: &PanelError) -> ItemLine {
        let error = Some(error.to_string());
        match self.item {
            Item::Question(question) => {
                let line = self.answer_line(question, Verdict::default());
                ItemLine::Answer(AnswerLine { error, ..line })
            }
            Item::Note(note) => ItemLine::Note(NoteLine { error, ..self.note_line(note) }),
        }
    }

    /// An empty answer is wrong where there is gold.
    fn answer_line(&self, question: &Question, verdict: Verdict) -> AnswerLine {
        let gold = question.gold.map(String::from);
        AnswerLine {
            dataset: self.dataset.to_owned(),
            run: self.run,
            item: question.id.clone(),
            correct: gold.as_ref().map(|gold| *gold == verdict.answer),
            gold,
            team_confidence: Some(verdict.team_confidence).filter(|_| !verdict.answer.is_empty()),
            answer: verdict.answer,
            rationale: verdict.rationale,
            tie: verdict.tie,
            ..AnswerLine::default()
        }
    }

    /// The line of a note, its calls and findings still to be filled in.
    pub(super) fn note_line(&self, note: &Note) -> NoteLine {
        NoteLine {
            dataset: self.dataset.to_owned(),
            run: self.run,
            item: note.id.clone(),
            language: note.language,
            gold: note.gold.clone(),
            ..NoteLine::default()
        }
    }
}

impl<'a> Case<'a> {
    /// The line of a question. Its answer needs a reply that could be read, of a call that gives one. Of options of one text every letter
    /// counts as one of them.
    pub fn close(self, mut rounds: Vec<RoundLine>, mut verdict: Verdict) -> AnswerLine {
        let of_rounds = rounds.iter_mut();
        let answers =
            of_rounds.flat_map(|round| round.answers.iter_mut().chain([&mut round.aggregate]));
        for answer in answers.chain([&mut verdict.answer]) {
            *answer = self.item.counted(answer);
        }
        let verdict = match self.basis.get() {
            Some(_) => verdict,
            None => Verdict { rationale: verdict.rationale, ..Verdict::default() },
        };
        let rounds_run = rounds.last().map_or(0, |round| round.round);
        let line = self.task.answer_line(self.item, verdict);
        AnswerLine { rounds, rounds_run, calls: self.calls.get(), ..line }
    }

    /// The agents of the panel's members, each with its place.
    pub fn agents(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.task.panel.members.iter().map(|member| member.agent.as_str()).enumerate()
    }
}

impl<'a, T> Case<'a, T> {
    fn new(task: &'a Task<'_>, item: &'a T, own: Vec<String>) -> Case<'a, T> {
        let own = RefCell::new(own);
        Case { task, item, calls: Cell::new(0), basis: Cell::new(None), own }
    }

    /// The call of `agent` in a step, to the panel's member of this index; `agent` differs from the member's where one member plays several.
    pub fn call(
        &self,
        step: &Step,
        member: usize,
        agent: impl Into<String>,
        messages: Vec<Message>,
    ) -> Call {
        Call {
            member,
            key: self.key(agent.into(), step.round, &step.purpose),
            stage: step.stage,
            messages,
            temperature: None,
            max_tokens: None,
            grammar: Some(step.grammar.clone()),
        }
    }

    /// Makes all calls at once and waits for every answer. Of a failure answers to the other calls are logged all the same, for they may have
    /// been paid for; an interrupt drops them.
    pub fn ask_all<R: Parsed>(
        &self,
        calls: impl IntoIterator<Item = Call>,
        read: impl Fn(&str, FinishReason) -> (R, Parse),
    ) -> Result<Vec<Asked<R>>, PanelError> {
        let calls: Vec<Call> = calls.into_iter().collect();
        self.calls.set(self.calls.get() + calls.len() as u32);
        // Logs the call with what was read of its answer, and remembers that something was.
        let log = |answered: Answered| {
            let CallLine { messages, text, finish_reason, .. } = &answered.line;
            let (value, record, parse) = self.read(messages, text, *finish_reason, &read);
            let call = self.task.panel.record(answered, record, parse)?;
            if call.stage != Stage::Aside {
                self.basis.set(self.basis.get().or(call.basis()));
            }
            Ok(Asked { call, value })
        };
        let answers = self.task.panel.answers(calls).map(|answered| answered.and_then(log));
        let (asked, failures): (Vec<_>, Vec<_>) = answers.partition_result();
        failures.into_iter().next().map_or(Ok(asked), Err)
    }

    pub fn ask<R: Parsed>(
        &self,
        call: Call,
        read: impl Fn(&str, FinishReason) -> (R, Parse),
    ) -> Result<Asked<R>, PanelError> {
        Ok(self.ask_all([call], read)?.swap_remove(0))
    }

    /// Searches the panel's corpora: retrieves so many chunks, and returns the best of them as passages.
    pub fn search(
        &self,
        place: SearchPlace,
        query: &str,
        retrieve_top_k: usize,
        rerank_top_k: usize,
    ) -> Result<SearchLine, PanelError> {
        let Task { panel, dataset, item, run } = *self.task;
        let (dataset, item, query) = (dataset.to_owned(), item.id().to_owned(), query.to_owned());
        let SearchPlace { round, step } = place;
        let key = SearchKey { dataset, run, item, round, step };
        panel.search(key, &SearchRequest { query, retrieve_top_k, rerank_top_k })
    }

    /// The seed of a random draw of the protocol itself.
    pub fn seed(&self, purpose: &str, round: u32) -> u64 {
        call_seed(self.task.panel.run_seed, &self.key(String::new(), round, purpose))
    }

    pub fn calls(&self) -> u32 {
        self.calls.get()
    }

    fn key(&self, agent: String, round: u32, purpose: &str) -> CallKey {
        CallKey {
            dataset: self.task.dataset.to_owned(),
            run: self.task.run,
            item: self.task.item.id().to_owned(),
            agent,
            round,
            purpose: purpose.to_owned(),
            sample: 0,
        }
    }
}
