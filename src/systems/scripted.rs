//! For tests: a question, and what a system makes of it where a script speaks for the models.

use super::case::Case;
use super::protocol::{Protocol, System};
use crate::data::{Choice, Question};
use crate::panel::scripted::{Script, panel};
use crate::prompts::PromptSet;
use crate::run::records::{CallRecord, ItemRecord};

/// A question with so many options, of which B is right.
pub fn question(options: usize) -> Question {
    let choice = |letter| Choice {
        letter,
        text: format!("option {letter}"),
    };
    Question {
        id: "q1".into(),
        question: "Which one {examples}?".into(),
        options: ('A'..='J').take(options).map(choice).collect(),
        gold: Some('B'),
        image: None,
    }
}

/// The line of the question, and its calls in the order of their answers.
pub fn answer(
    protocol: &Protocol,
    question: &Question,
    script: Script,
) -> (ItemRecord, Vec<CallRecord>) {
    let seats = protocol.seats();
    let agents: Vec<String> = seats.into_iter().map(|seat| seat.agent).collect();
    let (panel, calls) = panel(&agents, script);
    let system = System::new(protocol, &PromptSet::embedded()).unwrap();
    let case = Case::new(&panel, "medqa", question, 1).unwrap();
    let item = system.answer(case).unwrap();
    (item, calls.try_iter().collect())
}
