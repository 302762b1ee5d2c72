//! For tests: a question, a note, and what a system makes of it where a script speaks for the models.

use std::collections::HashSet;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::{Matcher, ParserFactory};
use serde::de::DeserializeOwned;

use super::exemplars::Exemplars;
use super::{SystemConfig, Task};
use crate::data::{Choice, Item, Note, Question};
use crate::experiment::link::Link;
use crate::panel::scripted::{Script, panel};
use crate::prompts::PromptSet;
use crate::record::{AnswerLine, CallLine, ItemLine, NoteLine};
use crate::record::{GoldLine, Language};

/// Settings from `key=value` pairs.
pub fn settings<T: DeserializeOwned>(pairs: &[&str]) -> T {
    let pairs = pairs.iter().map(|pair| pair.split_once('=').unwrap());
    let table = pairs.map(|(key, value)| (key.to_owned(), value.into()));
    table.collect::<toml::Table>().try_into().unwrap()
}

/// A question with so many options, of which B is right.
pub fn question(options: usize) -> Question {
    let choice = |letter| Choice { letter, text: format!("option {letter}") };
    Question {
        id: "q1".into(),
        question: "Which one {examples}?".into(),
        options: ('A'..='J').take(options).map(choice).collect(),
        gold: Some('B'),
        ..Question::default()
    }
}

/// The sentence of [`note`] with an error in it.
pub const WRONG: &str = "Beta blockers were given for the attack.";

/// A note of three sentences, whose second has an error.
pub fn note() -> Note {
    let sentences = ["A 30-year-old woman came with wheezing.", WRONG, "She went home."];
    Note {
        id: "ms-1".into(),
        text: sentences.join(" "),
        sentences: sentences.map(str::to_owned).to_vec(),
        language: Language::English,
        gold: Some(GoldLine {
            flag: true,
            sentence_id: Some(1),
            sentence: Some(WRONG.into()),
            correction: Some("Beta agonists were given for the attack.".into()),
            kind: Some("pharmacotherapy".into()),
            keywords: vec!["agonists".into()],
        }),
    }
}

/// The line of the question, and its calls in the order of their answers, every one counted and with a key of its own.
pub fn answer(
    config: &SystemConfig,
    question: &Question,
    script: Script,
) -> (AnswerLine, Vec<CallLine>) {
    match work(config, &question.clone().into(), script) {
        (ItemLine::Answer(record), calls) => (record, calls),
        (ItemLine::Note(record), _) => panic!("{record:?}"),
    }
}

/// Four notes to show beside [`note`], of which the first and third have an error.
pub fn exemplars() -> Arc<Exemplars> {
    let exemplar = |id: usize, end: &str, correction: Option<&str>| {
        let sentences = [format!("Patient {id} came with a cough of {id} days."), end.to_owned()];
        let gold = correction.map(|correction| GoldLine {
            flag: true,
            sentence_id: Some(1),
            sentence: Some(end.to_owned()),
            correction: Some(correction.to_owned()),
            kind: Some("treatment".into()),
            keywords: Vec::new(),
        });
        Note {
            id: format!("ms-train-{id}"),
            text: sentences.join(" "),
            sentences: sentences.to_vec(),
            language: Language::English,
            gold: Some(gold.unwrap_or_default()),
        }
    };
    let notes = [
        exemplar(2, "Aspirin was given for malaria.", Some("Artesunate was given for malaria.")),
        exemplar(3, "Salbutamol was given for wheezing.", None),
        exemplar(
            4,
            "Beta blockers were given for asthma.",
            Some("Beta agonists were given for asthma."),
        ),
        exemplar(5, "Penicillin was given for syphilis.", None),
    ];
    Arc::new(Exemplars::new(notes, &Default::default()))
}

/// The line of the note, and its calls in the order of their answers.
pub fn check(config: &SystemConfig, note: &Note, script: Script) -> (NoteLine, Vec<CallLine>) {
    match work(config, &note.clone().into(), script) {
        (ItemLine::Note(record), calls) => (record, calls),
        (ItemLine::Answer(record), _) => panic!("{record:?}"),
    }
}

/// The line of an item, and its calls.
pub fn work(config: &SystemConfig, item: &Item, script: Script) -> (ItemLine, Vec<CallLine>) {
    let slots = config.slots();
    let agents: Vec<String> = slots.into_iter().map(|slot| slot.agent).collect();
    let (panel, calls) = panel(&agents, script);
    let system = config.build(&PromptSet::embedded(), &exemplars()).unwrap();
    let task = Task { panel: &panel, dataset: "medqa", item, run: 1 };
    let record = system.answer(&task).unwrap();
    let calls: Vec<CallLine> = calls.try_iter().collect();
    let counted = match &record {
        ItemLine::Answer(record) => record.calls,
        ItemLine::Note(record) => record.calls,
    };
    assert_eq!(counted as usize, calls.len());
    let keys: HashSet<_> = calls.iter().map(Link::key).collect();
    assert_eq!(keys.len(), calls.len(), "two calls with one key");
    (record, calls)
}

/// The line of the question and its calls, where prompts and replies hold no braces around a name: none may be left to fill in.
pub fn answer_filled(
    config: &SystemConfig,
    question: &Question,
    script: Script,
) -> (AnswerLine, Vec<CallLine>) {
    let (item, calls) = answer(config, question, script);
    for message in calls.iter().flat_map(|call| &call.messages) {
        let prompt = message.content.replace(&question.question, "");
        let found = prompt.split('{').skip(1).find(|rest| is_placeholder(rest));
        assert_eq!(found, None, "{prompt}");
    }
    (item, calls)
}

/// Whether what follows a brace is a name and the closing brace.
fn is_placeholder(rest: &str) -> bool {
    let name = rest.split_once('}').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// An answer and its explanation, as doctors are asked for them.
pub fn said(answer: &str) -> String {
    format!(r#"{{"explanation": "for {answer}", "answer": "{answer}"}}"#)
}

/// Walks a grammar byte by byte.
pub fn matcher(grammar: TopLevelGrammar) -> Matcher {
    let tokens = ApproximateTokEnv::single_byte_env();
    let factory = ParserFactory::new_simple(&tokens).unwrap();
    Matcher::new(factory.create_parser(grammar))
}

/// Whether a grammar takes a text from its first byte to its last.
pub fn accepts(grammar: TopLevelGrammar, text: &str) -> bool {
    let mut matcher = matcher(grammar);
    let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
    matcher.validate_tokens(&bytes).unwrap() == bytes.len() && {
        matcher.consume_tokens(&bytes).unwrap();
        matcher.is_accepting().unwrap()
    }
}
