//! The notes of a run, graded: per run and note, what is right.

use std::collections::{BTreeMap, HashMap};

use super::quality::Gauge;
use crate::data::Format;
use crate::experiment::contents::Contents;
use crate::record::{CallLine, LocalisationLine, NoteLine, Source};
use crate::text::diff_keywords;

/// The graded notes of a run directory, in the plan's order, in every run.
pub struct NotesReading<'a> {
    pub contents: &'a Contents,
    pub notes: Vec<&'a str>,
    /// `[runs][notes]`.
    pub runs: Vec<Vec<&'a NoteLine>>,
}

/// What is right of a note. An item that errored has nothing right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the flag is right; what could not be read is not.
    pub is_detected: bool,
    /// Whether the flag could be read.
    pub is_read: bool,
    /// Whether the sentence is, or its absence; by likeness.
    pub is_located: bool,
    /// The same where the system's words must equal the sentence.
    pub is_located_exactly: bool,
}

impl<'a> NotesReading<'a> {
    /// Notes without gold are left out, and so is what a later line of the same note replaced.
    pub fn of(contents: &'a Contents) -> NotesReading<'a> {
        let mut by_run: BTreeMap<u32, HashMap<&str, &NoteLine>> = BTreeMap::new();
        for record in contents.notes().into_values() {
            by_run
                .entry(record.run)
                .or_default()
                .insert(&record.item, record);
        }
        let is_graded = |item: &&String| {
            !by_run.is_empty()
                && by_run.values().all(|run| {
                    let record = run.get(item.as_str());
                    record.is_some_and(|record| record.gold.is_some())
                })
        };
        let items = contents.plan.dataset.items.iter();
        let notes: Vec<&str> = items.filter(is_graded).map(String::as_str).collect();
        let runs = by_run.values();
        let runs = runs.map(|run| notes.iter().map(|note| run[note]).collect());
        NotesReading {
            contents,
            runs: runs.collect(),
            notes,
        }
    }

    /// `[runs][notes]`, of whatever is asked of a note.
    pub fn map<T>(&self, value: impl Fn(&'a NoteLine) -> T) -> Vec<Vec<T>> {
        let runs = self.runs.iter();
        runs.map(|run| run.iter().map(|record| value(record)).collect())
            .collect()
    }

    pub fn verdicts(&self) -> Vec<Vec<Verdict>> {
        self.map(verdict)
    }

    /// Whether the notes are MEDEC's, whose ROUGE is another than MedErrBench's.
    pub fn is_medec(&self) -> bool {
        self.contents.plan.dataset.format == Format::Medec.name()
    }

    /// The calls of graded and other notes alike.
    pub fn calls(&self) -> impl Iterator<Item = &'a CallLine> {
        self.contents.calls.records.iter()
    }
}

/// What a correction of this note must name: what was given for it, else what its file says, else the words that the gold correction
/// changes.
pub fn keywords(record: &NoteLine, gauge: &Gauge) -> Vec<String> {
    if let Some(given) = gauge.keywords.get(&record.item) {
        return given.clone();
    }
    let Some(gold) = &record.gold else {
        return Vec::new();
    };
    match (&gold.keywords[..], &gold.sentence, &gold.correction) {
        ([], Some(sentence), Some(correction)) => {
            let changed = diff_keywords(sentence, correction);
            changed.into_iter().map(str::to_owned).collect()
        }
        (given, _, _) => given.to_vec(),
    }
}

/// Of one note.
pub fn verdict(record: &NoteLine) -> Verdict {
    let gold = record.gold.as_ref();
    let is_read = record.flag.is_some() && record.error.is_none();
    let wanted = gold.and_then(|gold| gold.sentence_id);
    // One who could not be read has not said that there is no error.
    let says_something = match &record.localisation {
        Some(localisation) => record.sentence_id.is_some() || says_nan(localisation),
        None => true,
    };
    let locates = |id: Option<usize>| is_read && gold.is_some() && id == wanted && says_something;
    Verdict {
        is_detected: is_read && record.flag == gold.map(|gold| gold.flag),
        is_read,
        is_located: locates(record.sentence_id),
        is_located_exactly: locates(record.exact_sentence_id)
            && record.sentence_id == record.exact_sentence_id,
    }
}

/// Whether a stage that gave no sentence said so.
fn says_nan(localisation: &LocalisationLine) -> bool {
    let said = |opinion: &String| opinion == "NAN";
    match localisation.source {
        Source::Vote => {
            localisation.opinions.iter().filter(|one| said(one)).count() > 1
                || localisation.opinions.first().is_some_and(said)
        }
        _ => localisation.opinions.last().is_some_and(said),
    }
}
