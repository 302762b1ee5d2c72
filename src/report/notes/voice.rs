//! One call about a note as a card: what the agent said, why, and the text it was read from.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::record::{CallLine, NoteLine, Source};
use crate::report::case::Verdict;
use crate::report::made::Made;
use crate::report::prompts::user_message;
use crate::report::read::{plain, text, told};
use crate::systems::medguards::parse::thought;

/// Fields of a call's record that a card has a place for; others are listed by name.
const FIELDS: [&str; 5] = ["flag", "result", "sentence_id", "correction", "confidence"];

#[derive(Serialize)]
pub struct Voice<'a> {
    agent: &'a str,
    backbone: &'a str,
    /// What it came to, in a few words.
    said: String,
    verdict: Verdict,
    confidence: Option<String>,
    thought: String,
    /// The sentence that was named, in the agent's words.
    named: Cow<'a, str>,
    correction: Cow<'a, str>,
    others: Vec<Pair<'a>>,
    /// What it was asked, of one who had read others.
    shown: Option<&'a str>,
    made: Made<'a>,
}

#[derive(Serialize)]
struct Pair<'a> {
    name: &'a str,
    text: Cow<'a, str>,
}

impl<'a> Voice<'a> {
    /// `prompt` is the number of the call's prompt in the appendix, whose words are those of another note.
    pub fn new(call: &'a CallLine, note: &NoteLine, prompt: usize) -> Voice<'a> {
        let (said, verdict) = said(call, note);
        let confidence = call.record["confidence"].as_f64();
        let fields = call.record.as_object().into_iter().flatten();
        let others = fields.filter(|(name, value)| {
            !FIELDS.contains(&name.as_str()) && !plain(value).trim().is_empty()
        });
        Voice {
            agent: &call.agent,
            backbone: &call.backbone,
            said,
            verdict,
            confidence: confidence.map(|share| format!("{share:.2}")),
            thought: thought(&call.text),
            named: text(&call.record, "result"),
            correction: text(&call.record, "correction"),
            others: others
                .map(|(name, value)| Pair {
                    name,
                    text: told(value),
                })
                .collect(),
            shown: user_message(call).filter(|_| arbitrates(call, note)),
            made: Made::new(call, prompt),
        }
    }
}

/// What a call said: a flag, a sentence, a correction, as far as its record has them; and whether flag and sentence are gold's.
fn said(call: &CallLine, note: &NoteLine) -> (String, Verdict) {
    let record = &call.record;
    let gold = note.gold.as_ref();
    let judged = |is_right: Option<bool>| match is_right {
        Some(true) => Verdict::Right,
        Some(false) => Verdict::Wrong,
        None => Verdict::Ungraded,
    };
    if let Some(flag) = record.get("flag") {
        let is_right = gold.map(|gold| flag.as_bool() == Some(gold.flag));
        let words = match (flag.as_bool(), record["sentence_id"].as_u64()) {
            (Some(true), Some(id)) => format!("error in sentence {id}"),
            (Some(true), None) => "error".to_owned(),
            (Some(false), _) => "no error".to_owned(),
            (None, _) => "unreadable".to_owned(),
        };
        return (words, judged(is_right));
    }
    if let Some(result) = record.get("result") {
        let id = sentence_meant(call, note);
        let words = match (id, result) {
            (Some(id), _) => format!("sentence {id}"),
            (None, Value::String(said)) if said == "NAN" => "no sentence".to_owned(),
            (None, _) => "unreadable".to_owned(),
        };
        return (words, judged(gold.map(|gold| id == gold.sentence_id)));
    }
    let words = match record.get("correction") {
        Some(Value::String(_)) => "a correction",
        Some(_) => "no correction",
        None => "",
    };
    (words.to_owned(), Verdict::Ungraded)
}

/// Whether a call settled a stage after reading what others had said.
fn arbitrates(call: &CallLine, note: &NoteLine) -> bool {
    let settled = match call.purpose.as_str() {
        "detection" => note
            .detection
            .as_ref()
            .map(|one| (one.source, one.agents.last())),
        "localisation" => note
            .localisation
            .as_ref()
            .map(|one| (one.source, one.agents.last())),
        _ => None,
    };
    settled == Some((Source::Arbitration, Some(&call.agent)))
}

/// The sentence that the item's line says this agent meant.
fn sentence_meant(call: &CallLine, note: &NoteLine) -> Option<usize> {
    let localisation = note.localisation.as_ref()?;
    let mut agents = localisation.agents.iter();
    let place = agents.position(|agent| *agent == call.agent)?;
    *localisation.sentence_ids.get(place)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::notes::fixtures::{called, detected, gold, located, note};
    use serde_json::json;

    #[test]
    fn what_an_arbiter_read_is_shown() {
        let mut settled = note("x");
        let shown = |note: &NoteLine, agent: &str| {
            let call = called("x", agent, "detection");
            Voice::new(&call, note, 1).shown.is_some()
        };
        for (source, is_shown) in [(Source::Arbitration, true), (Source::Vote, false)] {
            settled.detection = Some(detected(source, &[Some(true), Some(false), Some(true)]));
            assert_eq!(shown(&settled, "det3"), is_shown);
            assert!(!shown(&settled, "det1"));
        }
    }

    #[test]
    fn a_record_is_told_in_a_few_words_and_judged() {
        let mut graded = note("x");
        graded.gold = Some(gold(Some(1)));
        graded.localisation = Some(located(Source::Agreement, &[Some(1), None]));
        let told = |agent: &str, record: Value| {
            let mut call = called("x", agent, "detection");
            call.record = record;
            said(&call, &graded)
        };
        let words = |words: &str, verdict| (words.to_owned(), verdict);
        assert_eq!(
            told("det1", json!({"flag": true})),
            words("error", Verdict::Right)
        );
        assert_eq!(
            told("det1", json!({"flag": false})),
            words("no error", Verdict::Wrong)
        );
        assert_eq!(
            told("det1", json!({"flag": null})),
            words("unreadable", Verdict::Wrong)
        );
        assert_eq!(
            told("solo", json!({"flag": true, "sentence_id": 4})),
            words("error in sentence 4", Verdict::Right)
        );
        assert_eq!(
            told("loc1", json!({"result": "He."})),
            words("sentence 1", Verdict::Right)
        );
        assert_eq!(
            told("loc2", json!({"result": "NAN"})),
            words("no sentence", Verdict::Wrong)
        );
        assert_eq!(
            told("loc2", json!({"result": ""})),
            words("unreadable", Verdict::Wrong)
        );
        assert_eq!(
            told("corr1", json!({"correction": "He."})),
            words("a correction", Verdict::Ungraded)
        );
        assert_eq!(
            told("corr1", json!({"correction": null})),
            words("no correction", Verdict::Ungraded)
        );
        assert_eq!(told("other", json!("a text")), words("", Verdict::Ungraded));
    }
}
