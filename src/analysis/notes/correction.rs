//! How good the corrections are (MedGuards, §3.4 and §4; MEDIQA-CORR 2024's scorer): means over the pairs, and composites in which notes
//! that neither side corrects count as 1.

use serde::{Deserialize, Serialize};

use super::quality::{Gauge, LearnedScores, MEASURES, Quality};
use super::reading::{NotesReading, keywords};
use crate::analysis::metrics::kpcs::{kpcs, kpcs_gated};
use crate::analysis::metrics::over_runs::OverRuns;
use crate::record::Language;
use crate::record::NoteLine;

/// Corrections beside the gold ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Notes that both sides correct, by run.
    pub n_pairs: Vec<usize>,
    /// Notes that neither does, by run.
    pub n_correct_na: Vec<usize>,
    /// In the order of [`MEASURES`], without those that have no weights; AggregateScore last.
    pub measures: Vec<Measured>,
    /// Empty without BERTScore and BLEURT, whose mean with ROUGE-1 it takes.
    pub kpcs: Vec<Kpcs>,
    /// Where the notes' file names none, keywords are the words that the gold correction changes.
    pub keywords_are_changed_words: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub measure: String,
    /// Over the pairs; `null` where a run has none.
    pub subset: Option<OverRuns>,
    /// Over all notes: 1 where neither side corrects, 0 where one does.
    pub composite: OverRuns,
}

/// The Keyword-Prioritized Correction Score with one weight of the keywords.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kpcs {
    pub alpha: f64,
    /// Eq. 9: the share of the keywords.
    pub eq9: Measured,
    /// The published code: all keywords as one string, or nothing.
    pub gated: Measured,
}

/// What a note's correction comes to.
pub enum Pairing<'a> {
    /// Both sides correct.
    Pair(&'a str, &'a str),
    /// Neither does.
    BothNothing,
    /// One does; or the note errored, or its flag could not be read.
    Unpaired,
}

/// The gold correction and the system's.
pub fn pairing(record: &NoteLine) -> Pairing<'_> {
    let Some(gold) = &record.gold else {
        return Pairing::Unpaired;
    };
    if record.error.is_some() || record.flag.is_none() {
        return Pairing::Unpaired;
    }
    match (&gold.correction, &record.correction) {
        (Some(reference), Some(candidate)) => Pairing::Pair(reference, candidate),
        (None, None) => Pairing::BothNothing,
        _ => Pairing::Unpaired,
    }
}

impl Correction {
    /// `None` without graded notes.
    pub fn of(reading: &NotesReading<'_>, gauge: &Gauge) -> Option<Correction> {
        let learned = &gauge.learned;
        let qualities = reading.map(|record| quality(record, learned));
        let is_medec = reading.is_medec();
        let count = |is: fn(&Pairing<'_>) -> bool| -> Vec<usize> {
            let runs = reading.runs.iter();
            runs.map(|run| run.iter().filter(|record| is(&pairing(record))).count())
                .collect()
        };
        let measured = |measure: &str, score: &dyn Fn(&NoteLine, &Quality) -> Option<f64>| {
            measured(reading, &qualities, measure, score)
        };
        // Without its weights, or its language, a measure has no figure, even where no note is a pair.
        let bertscore = learned.values().any(|one| one.bertscore.is_some());
        let bleurt = learned.values().any(|one| one.bleurt.is_some());
        let mut records = reading.runs.iter().flatten();
        let is_english = records.any(|record| record.language == Language::English);
        let has = |measure: &str| match measure {
            "bertscore" => bertscore,
            "bleurt" => bleurt,
            "aggregate" => bertscore && bleurt,
            _ => is_english || !measure.ends_with("stemmed"),
        };
        let mut measures: Vec<Measured> = MEASURES
            .iter()
            .filter(|(name, _)| has(name))
            .filter_map(|(name, _)| measured(name, &|_, quality| quality.get(name)))
            .collect();
        if has("aggregate") {
            measures.extend(measured("aggregate", &|_, quality| {
                quality.aggregate(is_medec)
            }));
        }
        let of_alpha = |alpha: f64| {
            let words = |record: &NoteLine| keywords(record, gauge);
            Some(Kpcs {
                alpha,
                eq9: measured("kpcs", &|record, quality| {
                    let correction = record.correction.as_deref()?;
                    let similarity = quality.aggregate(is_medec)?;
                    // Where nothing is to be named, nothing was.
                    Some(kpcs(&words(record), correction, similarity, alpha).unwrap_or(0.0))
                })?,
                gated: measured("kpcs_gated", &|record, quality| {
                    let correction = record.correction.as_deref()?;
                    let similarity = quality.aggregate(is_medec)?;
                    Some(kpcs_gated(
                        &words(record).join(" "),
                        correction,
                        similarity,
                        alpha,
                    ))
                })?,
            })
        };
        let kpcs = match has("aggregate") {
            true => gauge.alphas.iter().copied().filter_map(of_alpha).collect(),
            false => Vec::new(),
        };
        let golds = reading.runs.iter().flatten();
        let mut golds = golds.filter_map(|record| record.gold.as_ref());
        (!reading.notes.is_empty()).then(|| Correction {
            n_pairs: count(|one| matches!(one, Pairing::Pair(..))),
            n_correct_na: count(|one| matches!(one, Pairing::BothNothing)),
            measures,
            kpcs,
            keywords_are_changed_words: gauge.keywords.is_empty()
                && golds.all(|gold| gold.keywords.is_empty()),
        })
    }

    /// By the measure's name.
    pub fn measure(&self, name: &str) -> Option<&Measured> {
        self.measures.iter().find(|one| one.measure == name)
    }
}

/// `None` where the note is no pair.
pub fn quality(record: &NoteLine, learned: &LearnedScores) -> Option<Quality> {
    let Pairing::Pair(reference, candidate) = pairing(record) else {
        return None;
    };
    let key = (reference.to_owned(), candidate.to_owned());
    let learned = learned.get(&key).copied().unwrap_or_default();
    Some(Quality::of(record.language, reference, candidate, learned))
}

/// Every note's part in the composite, `[runs][notes]`; `None` where the measure has no score for a pair.
pub fn parts(
    reading: &NotesReading<'_>,
    qualities: &[Vec<Option<Quality>>],
    score: &dyn Fn(&NoteLine, &Quality) -> Option<f64>,
) -> Option<Vec<Vec<f64>>> {
    let run = |(records, qualities): (&Vec<&NoteLine>, &Vec<Option<Quality>>)| {
        let notes = records.iter().zip(qualities);
        notes
            .map(|(record, quality)| match (pairing(record), quality) {
                (Pairing::BothNothing, _) => Some(1.0),
                (Pairing::Pair(..), Some(quality)) => score(record, quality),
                _ => Some(0.0),
            })
            .collect::<Option<Vec<f64>>>()
    };
    reading.runs.iter().zip(qualities).map(run).collect()
}

/// `None` where the measure has no score for a pair, or there are no notes.
fn measured(
    reading: &NotesReading<'_>,
    qualities: &[Vec<Option<Quality>>],
    measure: &str,
    score: &dyn Fn(&NoteLine, &Quality) -> Option<f64>,
) -> Option<Measured> {
    let parts = parts(reading, qualities, score)?;
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let of_pairs = |(parts, qualities): (&Vec<f64>, &Vec<Option<Quality>>)| {
        let pairs = parts.iter().zip(qualities);
        let pairs = pairs.filter(|(_, quality)| quality.is_some());
        mean(&pairs.map(|(part, _)| *part).collect::<Vec<_>>())
    };
    let subset = parts.iter().zip(qualities).map(of_pairs);
    Some(Measured {
        measure: measure.to_owned(),
        subset: subset.collect::<Option<Vec<_>>>().and_then(OverRuns::of),
        composite: OverRuns::of(parts.iter().map(|run| mean(run)).collect::<Option<_>>()?)?,
    })
}
