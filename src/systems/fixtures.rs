//! One question and a scripted panel, for the tests of protocols.

use crate::data::{Choice, Question};
use crate::panel::PanelError;
use crate::panel::scripted::{Script, panel};
use crate::run::records::{CallRecord, ItemRecord};

use super::case::Case;

/// Five options, of which B is right.
pub fn question() -> Question {
    let choice = |(letter, text): (char, &str)| Choice {
        letter,
        text: text.to_owned(),
    };
    let options = ["Zinc", "Vitamin C", "Iron", "Folate", "Iodine"];
    Question {
        id: "q1".into(),
        question: "What is missing in scurvy?".into(),
        options: ('A'..='E').zip(options).map(choice).collect(),
        gold: Some('B'),
        image: None,
    }
}

/// Plays a case with `agents` that speak by `script`: its line, and its calls in the order they were recorded.
pub fn play(
    agents: &[String],
    script: Script,
    answer: impl FnOnce(Case<'_>) -> Result<ItemRecord, PanelError>,
) -> (ItemRecord, Vec<CallRecord>) {
    let (panel, calls) = panel(agents, script);
    let question = question();
    let case = Case::new(&panel, "demo", &question, 1).unwrap();
    let item = answer(case).unwrap();
    let calls: Vec<CallRecord> = calls.try_iter().collect();
    assert_eq!(item.calls as usize, calls.len());
    let mut keys: Vec<_> = calls.iter().map(CallRecord::key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), calls.len(), "two calls with one key");
    for message in calls.iter().flat_map(|call| &call.messages) {
        let unfilled = |rest: &str| {
            let name = rest.split('}').next().unwrap_or("");
            name.len() < rest.len()
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        };
        let found = message
            .content
            .split('{')
            .skip(1)
            .find(|rest| unfilled(rest));
        assert_eq!(found, None, "a placeholder was left in {}", message.content);
    }
    (item, calls)
}

/// An answer with its explanation, as doctors are asked for it.
pub fn said(answer: &str) -> String {
    format!(r#"{{"explanation": "for {answer}", "answer": "{answer}"}}"#)
}
