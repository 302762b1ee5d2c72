//! One note of one run: its row in the list, and everything that opening it shows.

use serde::Serialize;

use super::correction::Correction;
use super::flag::Flag;
use super::passage::{Instructions, Passage};
use super::stage::{Stage, stages, word};
use crate::analysis::notes::{ScoresByPair, verdict};
use crate::record::Language;
use crate::record::{CallLine, GoldLine, NoteLine};
use crate::report::case::{Verdict, anchor, excerpt};
use crate::report::prompts::Prompts;

#[derive(Serialize)]
pub struct Case<'a> {
    anchor: String,
    id: &'a str,
    pub run: u32,
    /// Of the note's text, as HTML names it.
    lang: &'static str,
    pub flags: Vec<Flag>,
    verdict: Verdict,
    /// Whether the sentence is right too.
    place: Verdict,
    /// Whether the system's very words are the sentence.
    is_exact: bool,
    gold: Option<&'a GoldLine>,
    wanted: String,
    found: String,
    flag: Option<bool>,
    sentence_id: Option<usize>,
    confidence: Option<String>,
    /// How each stage was settled, in a word.
    settled: Vec<&'static str>,
    excerpt: String,
    passage: Option<Passage<'a>>,
    /// The sentences as the records have them, for where the text does not hold them.
    sentence: &'a str,
    correction: Option<Correction>,
    stages: Vec<Stage<'a>>,
    calls: u32,
    error: Option<&'a str>,
    elsewhere: Vec<Elsewhere>,
}

/// What another run made of the note.
#[derive(Serialize)]
struct Elsewhere {
    run: u32,
    anchor: String,
    found: String,
    verdict: Verdict,
}

impl<'a> Case<'a> {
    /// A case from its record and its calls, in the order in which they were made.
    pub fn new(
        note: &'a NoteLine,
        calls: &[&'a CallLine],
        neural: &ScoresByPair,
        instructions: &Instructions,
        prompts: &mut Prompts<'a>,
    ) -> Case<'a> {
        let passage = Passage::of(note, calls, instructions);
        let sources = [
            note.detection.as_ref().map(|stage| stage.source),
            note.localisation.as_ref().map(|stage| stage.source),
        ];
        let gold = note.gold.as_ref();
        let verdict = verdict(note);
        Case {
            anchor: anchor(&note.dataset, note.run, &note.item),
            id: &note.item,
            run: note.run,
            lang: code(note.language),
            flags: Flag::of(note, calls),
            verdict: judged(note, verdict.is_detected),
            place: judged(note, verdict.is_located),
            is_exact: verdict.is_located_exactly,
            gold,
            wanted: gold.map_or("–".to_owned(), |gold| {
                told(Some(gold.flag), gold.sentence_id)
            }),
            found: found(note),
            flag: note.flag,
            sentence_id: note.sentence_id,
            confidence: note.confidence.map(|share| format!("{share:.2}")),
            settled: sources.into_iter().flatten().map(word).collect(),
            excerpt: passage
                .as_ref()
                .map(|passage| excerpt(passage.text))
                .unwrap_or_default(),
            passage,
            sentence: &note.sentence,
            correction: Correction::of(note, neural),
            stages: stages(note, calls, prompts),
            calls: note.calls,
            error: note.error.as_deref(),
            elsewhere: Vec::new(),
        }
    }

    /// Notes what other runs made of it.
    pub fn compare(&mut self, others: &[&NoteLine]) {
        let others = others.iter().filter(|other| other.run != self.run);
        let elsewhere = |other: &&NoteLine| Elsewhere {
            run: other.run,
            anchor: anchor(&other.dataset, other.run, &other.item),
            found: found(other),
            verdict: judged(other, verdict(other).is_detected),
        };
        self.elsewhere = others.map(elsewhere).collect();
    }

    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

fn judged(note: &NoteLine, is_right: bool) -> Verdict {
    match (&note.gold, is_right) {
        (None, _) => Verdict::Ungraded,
        (Some(_), true) => Verdict::Right,
        (Some(_), false) => Verdict::Wrong,
    }
}

fn found(note: &NoteLine) -> String {
    match note.error {
        Some(_) => "–".to_owned(),
        None => told(note.flag, note.sentence_id),
    }
}

/// A flag and a sentence in a few words. Sentences are numbered from 0, as the files do.
fn told(flag: Option<bool>, sentence_id: Option<usize>) -> String {
    match (flag, sentence_id) {
        (None, _) => "unreadable".to_owned(),
        (Some(false), _) => "no error".to_owned(),
        (Some(true), None) => "error, nowhere".to_owned(),
        (Some(true), Some(id)) => format!("error in {id}"),
    }
}

fn code(language: Language) -> &'static str {
    match language {
        Language::English => "en",
        Language::Chinese => "zh",
        Language::Arabic => "ar",
    }
}
