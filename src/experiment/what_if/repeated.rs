//! Evidence that was only repeated: a reply of a later round whose reasons are word for word what had been written before.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use crate::record::CallLine;

/// Words in a row that are looked for in what was written before.
const WINDOW_WORDS: usize = 5;
/// Windows below which a reply is too short to tell.
const MIN_WINDOWS: usize = 10;
/// Of ten windows, how many must have been written before.
const REPEATED_TENTHS: usize = 9;

/// Who gave no reasons of its own.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    pub agent: String,
    pub round: u32,
    /// Windows of five words in its reasons, and those of them that replies of earlier rounds have, its own included.
    pub windows: usize,
    pub repeated: usize,
}

impl Repeated {
    /// Of an item's calls.
    pub fn among(calls: &[CallLine]) -> Vec<Repeated> {
        let of_round = |call: &CallLine| (call.round, windows(&call.text));
        let written: Vec<(u32, Vec<String>)> = calls.iter().map(of_round).collect();
        let repeated = calls.iter().zip(&written).filter_map(|(call, (round, own))| {
            let earlier = written.iter().filter(|(other, _)| other < round);
            let before: HashSet<&String> = earlier.flat_map(|(_, windows)| windows).collect();
            let (windows, repeated) =
                (own.len(), own.iter().filter(|window| before.contains(window)).count());
            (windows >= MIN_WINDOWS && 10 * repeated >= REPEATED_TENTHS * windows)
                .then(|| Repeated { agent: call.agent.clone(), round: *round, windows, repeated })
        });
        repeated.collect()
    }
}

/// Every five words in a row of a reply's texts, an object's keys aside.
fn windows(reply: &str) -> Vec<String> {
    let mut texts = Vec::new();
    match serde_json::from_str::<Value>(reply) {
        Ok(value) => gather(&value, &mut texts),
        Err(_) => texts.push(reply.to_owned()),
    }
    let mut windows = Vec::new();
    for text in texts {
        let text = text.to_lowercase();
        let words = text.split(|character: char| !character.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        windows.extend(words.windows(WINDOW_WORDS).map(|words| words.join(" ")));
    }
    windows
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| gather(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures;

    fn call(agent: &str, round: u32, text: &str) -> CallLine {
        CallLine { round, text: text.into(), ..fixtures::call("q1", 1, agent) }
    }

    const OWN: &str = "the cough began six weeks after the medicine and goes with nothing but an inhibitor of the enzyme";
    const OTHER: &str = "potassium rose while the kidneys were failing so that this drug would be the most dangerous of all";

    #[test]
    fn reasons_that_were_written_before_are_told_and_new_ones_are_not() {
        let repeats = format!(r#"{{"cot": ["{}"], "answer": "C"}}"#, OWN.to_uppercase());
        let adds = format!(r#"{{"cot": ["{OWN}", "{OTHER} and more"], "answer": "C"}}"#);
        let calls = [
            call("sym", 0, &format!(r#"{{"cot": ["{OWN}"], "answer": "C"}}"#)),
            call("ddx", 0, r#"{"cot": [], "answer": "A"}"#),
            call("sym", 1, &adds),
            call("ddx", 1, &repeats),
            // Of the same round, not before it; and too short to tell.
            call("guide", 1, OTHER),
            call("guide", 2, "the cough began six weeks after"),
        ];
        let expected = Repeated { agent: "ddx".into(), round: 1, windows: 14, repeated: 14 };
        assert_eq!(Repeated::among(&calls), [expected]);
    }
}
