//! A note's own part of its case: whether there is an error, in which sentence, how that was settled, and the correction; and what each call
//! about it came to.

use super::card::Head;
use super::correction::correction;
use super::{Correctness, Mark, Own, Turn};
use crate::analysis::notes::{ScoresByPair, verdict};
use crate::analysis::say::reply_in_words;
use crate::record::{
    CallLine, Language, NO_SENTENCE, NoteLine, Says, SettledBy, count, found_in_words,
    sentence_in_words,
};

/// Coloured only where the sentence is right too.
pub fn found(note: &NoteLine) -> Mark {
    let said = match note.error {
        Some(_) => "–".to_owned(),
        None => in_words(note.flag.said(), note.sentence_id),
    };
    let verdict = verdict(note);
    let is_right = note.gold.as_ref().map(|_| verdict.is_detected);
    Mark {
        said,
        verdict: match is_right {
            Some(true) if !verdict.is_located => Correctness::Ungraded,
            is_right => Correctness::from(is_right),
        },
    }
}

/// A flag and a sentence in a few words.
fn in_words(flag: Option<bool>, sentence_id: Option<usize>) -> String {
    match (flag, sentence_id) {
        (None, _) => "unreadable".to_owned(),
        (Some(true), None) => format!("{}, no sentence", found_in_words(true, None)),
        (Some(has_error), id) => found_in_words(has_error, id),
    }
}

pub fn own<'a>(note: &'a NoteLine, neural: &ScoresByPair) -> Own<'a> {
    let confidence = note.confidence.map(|share| format!("{share:.2}"));
    let kind = note.gold.as_ref().and_then(|gold| gold.kind.as_ref());
    let counts = [
        kind.map(|kind| format!("Error type: {kind}.")),
        confidence.as_ref().map(|one| format!("Confidence {one}.")),
        Some(format!("{}.", count(note.calls, "call"))),
    ];
    let leg = |purpose: &&str| {
        let said = stage(note, purpose)?.0.in_words().to_owned();
        Some(((*purpose).to_owned(), vec![Turn { said, ..Turn::default() }]))
    };
    Own {
        lang: match note.language {
            Language::English => "en",
            Language::Chinese => "zh",
            Language::Arabic => "ar",
        },
        trail: ["detection", "localisation"].iter().filter_map(leg).collect(),
        confidence: confidence.unwrap_or("–".to_owned()),
        outcome: outcome(note),
        counts: counts.into_iter().flatten().collect::<Vec<_>>().join(" "),
        correction: correction(note, neural),
        ..Own::default()
    }
}

pub fn wanted(note: &NoteLine) -> Option<String> {
    let gold = note.gold.as_ref()?;
    Some(in_words(Some(gold.flag), gold.sentence_id))
}

fn outcome(note: &NoteLine) -> Vec<String> {
    let Some((gold, wanted)) = note.gold.as_ref().zip(wanted(note)) else {
        return vec!["The note has no gold label.".to_owned()];
    };
    let detected = match (note.flag.said(), gold.flag) {
        (None, _) => format!("Wrong: no label could be read; gold is “{wanted}”."),
        (Some(true), true) => "Right: the note has an error.".to_owned(),
        (Some(false), false) => "Right: the note has no error.".to_owned(),
        (Some(false), true) => format!("Wrong: gold is “{wanted}”."),
        (Some(true), false) => "Wrong: the note has no error.".to_owned(),
    };
    let verdict = verdict(note);
    let located = (gold.flag && note.flag.has_error()).then(|| {
        let number = |id: Option<usize>| id.map_or("none".to_owned(), sentence_in_words);
        match (verdict.is_located, verdict.is_located_exactly) {
            (true, true) => "Right sentence, word for word.".to_owned(),
            (true, false) => "Right sentence, by similarity and not word for word.".to_owned(),
            (false, _) => format!(
                "Wrong sentence: {} was located, gold is {}.",
                number(note.sentence_id),
                number(gold.sentence_id)
            ),
        }
    });
    [detected].into_iter().chain(located).collect()
}

/// A flag, a sentence, a correction, as far as the call's record has them, in a few words; and whether flag and sentence are gold's.
pub fn said<'a>(call: &'a CallLine, note: &NoteLine) -> Head<'a> {
    let gold = note.gold.as_ref();
    let told = || reply_in_words(&call.record).unwrap_or("unreadable".to_owned());
    let (words, is_right) = match call.record.says() {
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
    };
    let confidence = call.record.confidence();
    Head {
        words,
        verdict: Correctness::from(is_right),
        confidence: confidence.map_or(String::new(), |share| format!("{share:.2}")),
        ..Head::default()
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
