//! One question or note in one run of a system: the calls that are made on it, and the line that it leaves.

use std::cell::Cell;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reply::refuses;
use crate::data::{Item, Note, Question};
use crate::panel::seed::call_seed;
use crate::panel::{Call, Panel, PanelError, Reader};
use crate::record::Grammar;
use crate::record::{
    AnswerLine, CallKey, CallLine, FinishReason, GoldLine, ItemLine, Message, NOT_AN_OPTION,
    NoteLine, Parse, RoundLine, Stage,
};

/// What a system works on: a question, or a note. It asks the panel and counts its calls.
pub struct Case<'a, T = Question> {
    pub panel: &'a Panel,
    pub item: &'a T,
    id: &'a str,
    image: Option<&'a str>,
    dataset: &'a str,
    run: u32,
    calls: Cell<u32>,
    /// The letters that count as an answer; any, where `None`.
    letters: Option<Vec<char>>,
}

/// An item of a run, before a panel that is to work on it.
pub struct Task<'a> {
    pub panel: &'a Panel,
    /// The name of the file of items.
    pub dataset: &'a str,
    pub item: &'a Item,
    pub run: u32,
}

impl<'a> Task<'a> {
    /// The item as a question.
    ///
    /// # Errors
    /// An item of another kind; a question with an image, where a member cannot be shown one.
    pub fn question(&self) -> Result<Case<'a>, PanelError> {
        match self.item {
            Item::Question(question) => Case::new(self.panel, self.dataset, question, self.run),
            Item::Note(_) => Err(self.other_item()),
        }
    }

    /// The item as a note.
    ///
    /// # Errors
    /// An item of another kind.
    pub fn note(&self) -> Result<Case<'a, Note>, PanelError> {
        match self.item {
            Item::Note(note) => Ok(Case::of_note(self.panel, self.dataset, note, self.run)),
            Item::Question(_) => Err(self.other_item()),
        }
    }

    fn other_item(&self) -> PanelError {
        PanelError::OtherItem { item: self.item.id().to_owned() }
    }
}

/// One call on a case; with the case, its key.
pub struct Ask {
    /// Index into the panel's members.
    pub member: usize,
    /// Who asks; the member's own agent, but where one member plays several.
    pub agent: String,
    pub stage: Stage,
    pub round: u32,
    pub purpose: &'static str,
    /// Counts repeated draws of one prompt.
    pub sample: u32,
    pub messages: Vec<Message>,
    /// What the text looks like; it holds unless the panel is free. `None`: any text.
    pub grammar: Option<Grammar>,
    /// `None`: as many as the context leaves.
    pub max_tokens: Option<usize>,
}

/// What a system makes of a case.
pub struct Verdict {
    /// One letter; empty where nobody gave one.
    pub answer: String,
    pub team_confidence: f64,
    pub rationale: String,
    /// Whether another answer had as many votes and an order decided.
    pub tie: bool,
}

impl<'a> Case<'a> {
    /// # Errors
    /// A question with an image, where a member cannot be shown one.
    pub fn new(
        panel: &'a Panel,
        dataset: &'a str,
        question: &'a Question,
        run: u32,
    ) -> Result<Case<'a>, PanelError> {
        if question.image.is_some() && !panel.takes_images() {
            return Err(PanelError::Image { item: question.id.clone() });
        }
        Ok(Case {
            panel,
            item: question,
            id: &question.id,
            image: question.image.as_deref(),
            dataset,
            run,
            calls: Cell::new(0),
            letters: Some(question.letters().collect()),
        })
    }

    /// Takes any letter from A to J for an answer, and no text for a refusal, as MED-MAD's paper does (App. B.2).
    pub fn with_any_letter(self) -> Case<'a> {
        let letters = None;
        Case { letters, ..self }
    }

    /// The line of a case that was answered.
    pub fn close(self, rounds: Vec<RoundLine>, verdict: Verdict) -> AnswerLine {
        let rounds_run = rounds.last().map_or(0, |round| round.round);
        let calls = self.calls.get();
        let mut record = answer(self.dataset, self.item, self.run, verdict);
        (record.rounds, record.rounds_run, record.calls) = (rounds, rounds_run, calls);
        record
    }
}

impl<'a> Case<'a, Note> {
    pub fn of_note(panel: &'a Panel, dataset: &'a str, note: &'a Note, run: u32) -> Self {
        Case {
            panel,
            item: note,
            id: &note.id,
            image: None,
            dataset,
            run,
            calls: Cell::new(0),
            letters: None,
        }
    }

    /// The line of a note before anything was found in it; calls and findings are still to be filled in.
    pub fn open(&self) -> NoteLine {
        note(self.dataset, self.item, self.run)
    }
}

impl<'a, T> Case<'a, T> {
    /// The name of the file of items.
    pub fn dataset(&self) -> &'a str {
        self.dataset
    }

    /// Asks all at once and waits for every answer.
    ///
    /// # Errors
    /// As [`Panel::ask_all`].
    pub fn ask_all(&self, asks: Vec<Ask>, read: Reader<'_>) -> Result<Vec<CallLine>, PanelError> {
        self.calls.set(self.calls.get() + asks.len() as u32);
        let calls = asks.into_iter().map(|ask| self.call(ask)).collect();
        let read = |text: &str, finish_reason| self.checked(text, finish_reason, read);
        self.panel.ask_all(calls, &read)
    }

    /// Asks one and waits.
    ///
    /// # Errors
    /// As [`Panel::ask_all`].
    pub fn ask(&self, ask: Ask, read: Reader<'_>) -> Result<CallLine, PanelError> {
        self.calls.set(self.calls.get() + 1);
        let read = |text: &str, finish_reason| self.checked(text, finish_reason, read);
        self.panel.ask_one(self.call(ask), &read)
    }

    /// A seed of the case's own, for what is drawn at random beside the models.
    pub fn seed(&self, purpose: &str, round: u32) -> u64 {
        call_seed(self.panel.run_seed, &self.key("", round, purpose, 0))
    }

    /// Calls so far.
    pub fn calls(&self) -> u32 {
        self.calls.get()
    }

    /// What `read` makes of a text, without an answer where the model refused, or gave a letter that the item has not; the record
    /// keeps that letter.
    fn checked(&self, text: &str, finish_reason: FinishReason, read: Reader<'_>) -> (Value, Parse) {
        let (mut record, parse) = read(text, finish_reason);
        let answer = record.get("answer").and_then(Value::as_str).unwrap_or("");
        let is_other = match (&self.letters, answer.chars().next()) {
            (Some(letters), Some(letter)) => !letters.contains(&letter),
            _ => false,
        };
        let refuses = matches!(answer, "" | "I") && self.letters.is_some() && refuses(text);
        if finish_reason == FinishReason::Refusal || (parse == Parse::Fallback && refuses) {
            if !answer.is_empty() {
                record["answer"] = "".into();
            }
            return (record, Parse::Refused);
        }
        if is_other {
            record[NOT_AN_OPTION] = record["answer"].take();
            record["answer"] = "".into();
            return (record, Parse::Fallback);
        }
        (record, parse)
    }

    fn call(&self, ask: Ask) -> Call {
        Call {
            member: ask.member,
            key: self.key(&ask.agent, ask.round, ask.purpose, ask.sample),
            stage: ask.stage,
            messages: ask.messages,
            image: self.image.map(str::to_owned),
            grammar: ask.grammar,
            max_tokens: ask.max_tokens,
        }
    }

    fn key(&self, agent: &str, round: u32, purpose: &str, sample: u32) -> CallKey {
        CallKey {
            dataset: self.dataset.to_owned(),
            run: self.run,
            item: self.id.to_owned(),
            agent: agent.to_owned(),
            round,
            purpose: purpose.to_owned(),
            sample,
        }
    }
}

/// The value that was read from a call's text.
///
/// # Errors
/// A record that is not such a value, as in a log that another version wrote.
pub fn value<T: DeserializeOwned>(call: &CallLine) -> Result<T, PanelError> {
    typed(call, &call.record)
}

/// What stands under a key of it.
///
/// # Errors
/// As [`value`].
pub fn part<T: DeserializeOwned>(call: &CallLine, key: &str) -> Result<T, PanelError> {
    typed(call, &call.record[key])
}

fn typed<T: DeserializeOwned>(call: &CallLine, value: &Value) -> Result<T, PanelError> {
    T::deserialize(value).map_err(|error| PanelError::Record { call: call.key(), error })
}

/// The line of an item that could not be worked on.
pub fn failure(dataset: &str, item: &Item, run: u32, error: &PanelError) -> ItemLine {
    let error = Some(error.to_string());
    match item {
        Item::Question(question) => {
            let nothing = Verdict {
                answer: String::new(),
                team_confidence: 0.0,
                rationale: String::new(),
                tie: false,
            };
            let record = answer(dataset, question, run, nothing);
            ItemLine::Answer(AnswerLine { error, ..record })
        }
        Item::Note(one) => ItemLine::Note(NoteLine { error, ..note(dataset, one, run) }),
    }
}

/// Nothing given, where there is gold, is wrong.
fn answer(dataset: &str, question: &Question, run: u32, verdict: Verdict) -> AnswerLine {
    let gold = question.gold.map(String::from);
    AnswerLine {
        dataset: dataset.to_owned(),
        run,
        item: question.id.clone(),
        correct: gold.as_ref().map(|gold| *gold == verdict.answer),
        gold,
        rounds: Vec::new(),
        answer: verdict.answer,
        team_confidence: verdict.team_confidence,
        rationale: verdict.rationale,
        rounds_run: 0,
        calls: 0,
        tie: verdict.tie,
        error: None,
        prev: String::new(),
        hash: String::new(),
    }
}

fn note(dataset: &str, note: &Note, run: u32) -> NoteLine {
    NoteLine {
        dataset: dataset.to_owned(),
        run,
        item: note.id.clone(),
        language: note.language,
        gold: note.gold.as_ref().map(GoldLine::from),
        flag: None,
        sentence_id: None,
        sentence: String::new(),
        exact_sentence_id: None,
        correction: None,
        confidence: None,
        detection: None,
        localisation: None,
        calls: 0,
        error: None,
        prev: String::new(),
        hash: String::new(),
    }
}

/// A call's messages: what the system says, where it says anything, and the user.
pub fn messages(system: &str, user: String) -> Vec<Message> {
    let message = |role: &str, content| Message { role: role.to_owned(), content };
    let system = (!system.is_empty()).then(|| message("system", system.to_owned()));
    system.into_iter().chain([message("user", user)]).collect()
}

#[cfg(test)]
mod tests {
    use crate::panel::scripted::Script;
    use crate::record::Parse;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{answer, question};

    fn said(text: &'static str, pairs: &[&str]) -> (String, Parse, serde_json::Value) {
        let config = SystemConfig::parse("medmad", pairs).unwrap();
        let (line, calls) = answer(&config, &question(5), Script::new(move |_, _| text.to_owned()));
        (line.answer, calls[0].parse, calls[0].record.clone())
    }

    #[test]
    fn a_refusal_is_no_answer() {
        for text in ["I can\u{2019}t help with that.", "I'm sorry, but I won't."] {
            let (answer, parse, record) = said(text, &[]);
            assert_eq!((answer.as_str(), parse), ("", Parse::Refused), "{text}");
            assert_eq!(record["answer"], "");
        }
        let (answer, parse, _) = said("I cannot help thinking of B.", &["letters=a-j"]);
        assert_eq!((answer.as_str(), parse), ("I", Parse::Fallback));
    }

    #[test]
    fn a_letter_that_the_item_has_not_is_no_answer_and_the_record_says_so() {
        let (answer, parse, record) = said(r#"{"answer": "I"}"#, &[]);
        assert_eq!((answer.as_str(), parse), ("", Parse::Fallback));
        assert_eq!(record["not_an_option"], "I");
        let (answer, parse, record) = said(r#"{"answer": "I"}"#, &["letters=a-j"]);
        assert_eq!((answer.as_str(), parse), ("I", Parse::Ok));
        assert!(record.get("not_an_option").is_none());
    }
}
