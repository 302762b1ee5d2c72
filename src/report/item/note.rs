//! A note's own part of its case: whether there is an error, in which sentence, how that was settled, and the correction.

use super::correction::Correction;
use super::{Correctness, Mark, Own, Turn};
use crate::analysis::notes::{ScoresByPair, verdict};
use crate::record::{Language, NoteLine, SettledBy, found_in_words, sentence_in_words};
use crate::report::escape::plural;

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
        Some(format!("{}.", plural(note.calls, "call"))),
    ];
    let sources = [
        ("detection", note.detection.as_ref().map(|one| one.source)),
        ("localisation", note.localisation.as_ref().map(|one| one.source)),
    ];
    let leg = |(stage, source): (&'static str, Option<SettledBy>)| {
        let turn = Turn {
            agent: "",
            said: source?.in_words().to_owned(),
            verdict: Correctness::Ungraded,
            changed: false,
        };
        Some((stage.to_owned(), vec![turn]))
    };
    Own {
        lang: match note.language {
            Language::English => "en",
            Language::Chinese => "zh",
            Language::Arabic => "ar",
        },
        trail: sources.into_iter().filter_map(leg).collect(),
        confidence: confidence.unwrap_or("–".to_owned()),
        outcome: outcome(note),
        counts: counts.into_iter().flatten().collect::<Vec<_>>().join(" "),
        correction: Correction::of(note, neural),
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
