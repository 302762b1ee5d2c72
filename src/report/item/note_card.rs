//! The outcome of a call about a note compared with gold, and how its stage was settled.

use super::Correctness;
use super::card::Said;
use crate::analysis::say::reply_in_words;
use crate::record::{CallLine, NO_SENTENCE, NoteLine, Says, SettledBy, sentence_in_words};

/// A flag, a sentence, a correction, as far as the call's record has them.
pub fn said<'a>(call: &'a CallLine, note: &NoteLine) -> Said<'a> {
    let (words, is_right) = words(call, note);
    let confidence = call.record.confidence();
    Said {
        words,
        verdict: Correctness::from(is_right),
        confidence: confidence.map_or(String::new(), |share| format!("{share:.2}")),
        ..Said::default()
    }
}

/// In a few words, and whether flag and sentence are gold's; `None` where nothing is graded.
fn words(call: &CallLine, note: &NoteLine) -> (String, Option<bool>) {
    let gold = note.gold.as_ref();
    let told = || reply_in_words(&call.record).unwrap_or("unreadable".to_owned());
    match call.record.says() {
        Says::Flag(flag, id) => {
            let is_right = gold.map(|gold| {
                // Of a call that names the sentence too, it is the note's.
                let is_placed =
                    id.is_none() || gold.sentence_id.is_none() || id == gold.sentence_id;
                flag == Some(gold.flag) && is_placed
            });
            (told(), is_right)
        }
        Says::Sentence(said) => {
            let id = sentence_meant(call, note);
            let words = match (id, said) {
                (Some(id), _) => sentence_in_words(id),
                (None, Some(NO_SENTENCE)) => "no sentence".to_owned(),
                (None, _) => "unreadable".to_owned(),
            };
            (words, gold.map(|gold| id == gold.sentence_id))
        }
        Says::Correction(Some(_)) => ("a correction".to_owned(), None),
        Says::Correction(None) => ("no correction".to_owned(), None),
        Says::Action(_) | Says::Score(_) => (told(), None),
        Says::Answer(_) | Says::Other => (String::new(), None),
    }
}

/// The sentence that the item's line says this agent meant.
fn sentence_meant(call: &CallLine, note: &NoteLine) -> Option<usize> {
    let localisation = note.localisation.as_ref()?;
    let mut agents = localisation.agents.iter();
    let place = agents.position(|agent| *agent == call.agent)?;
    *localisation.sentence_ids.get(place)?
}

/// How a stage was settled, and its agents.
fn stage<'a>(note: &'a NoteLine, purpose: &str) -> Option<(SettledBy, &'a [String])> {
    match purpose {
        "detection" => note.detection.as_ref().map(|one| (one.source, &*one.agents)),
        "localisation" => note.localisation.as_ref().map(|one| (one.source, &*one.agents)),
        _ => None,
    }
}

/// Whether a call settled a stage after reading what others had said.
pub fn arbitrates(call: &CallLine, note: &NoteLine) -> bool {
    stage(note, &call.purpose).is_some_and(|(source, agents)| {
        source == SettledBy::Arbitration && agents.last() == Some(&call.agent)
    })
}

/// How a stage was settled, in words.
pub fn settled(note: &NoteLine, purpose: &str) -> Option<String> {
    let (source, _) = stage(note, purpose)?;
    Some(format!("settled by {}", source.in_words()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Reply;
    use crate::report::tests::notes::{called, detected, gold, located, note};
    use serde_json::json;

    #[test]
    fn only_who_read_both_arbitrates() {
        let mut note = note("x");
        let asks =
            |note: &NoteLine, agent: &str| arbitrates(&called("x", agent, "detection"), note);
        for (source, is_arbiter) in [(SettledBy::Arbitration, true), (SettledBy::Vote, false)] {
            note.detection = Some(detected(source, &[Some(true), Some(false), Some(true)]));
            assert_eq!(asks(&note, "det3"), is_arbiter);
            assert!(!asks(&note, "det1"));
        }
    }

    #[test]
    fn a_record_is_told_in_a_few_words_and_judged() {
        let mut graded = note("x");
        graded.gold = Some(gold(Some(1)));
        graded.localisation = Some(located(SettledBy::Agreement, &[Some(1), None]));
        for (agent, record, expected, is_right) in [
            ("det1", json!({"flag": true}), "an error", Some(true)),
            ("det1", json!({"flag": false}), "no error", Some(false)),
            ("det1", json!({"flag": null}), "unreadable", Some(false)),
            ("solo", json!({"flag": true, "sentence_id": 1}), "an error in sentence 2", Some(true)),
            (
                "solo",
                json!({"flag": true, "sentence_id": 4}),
                "an error in sentence 5",
                Some(false),
            ),
            ("loc1", json!({"result": "He."}), "sentence 2", Some(true)),
            ("loc2", json!({"result": "NAN"}), "no sentence", Some(false)),
            ("loc2", json!({"result": ""}), "unreadable", Some(false)),
            ("corr1", json!({"correction": "He."}), "a correction", None),
            ("corr1", json!({"correction": null}), "no correction", None),
            ("other", json!("a text"), "", None),
        ] {
            let mut call = called("x", agent, "detection");
            call.record = Reply::of(record);
            let said = said(&call, &graded);
            assert_eq!(
                (said.words.as_str(), said.verdict),
                (expected, Correctness::from(is_right))
            );
        }
    }
}
