//! How good the corrections are (MedGuards, §3.4 and §4; MEDIQA-CORR 2024's scorer): means over the pairs, and composites in which notes
//! that neither side corrects count as 1.

use serde::{Deserialize, Serialize};

use super::quality::{CorrectionScorer, Measure, Quality, ScoresByPair};
use super::verdict::says_no_sentence;
use crate::analysis::metrics::kpcs::{kpcs, kpcs_gated, kpcs_ungated};
use crate::analysis::metrics::over_runs::{OverRuns, mean};
use crate::analysis::outcomes::Outcomes;
use crate::record::NoteLine;
use crate::text::diff_keywords;

/// Corrections compared with the gold ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Notes that both sides correct, by run.
    pub n_pairs: Vec<usize>,
    /// Notes that neither does, by run.
    pub n_correct_na: Vec<usize>,
    /// In the order of [`Measure::of_texts`], without those that have no weights; AggregateScore last.
    pub measures: Vec<Measured>,
    /// Empty without BERTScore and BLEURT, whose mean with ROUGE-1 it takes.
    pub kpcs: Vec<Kpcs>,
    /// Where the notes' file names none, keywords are the words that the gold correction changes.
    pub keywords_are_changed_words: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub measure: Measure,
    /// Over the pairs; `null` where a run has none.
    pub subset: Option<OverRuns>,
    /// Over all notes: 1 where neither side corrects, 0 where one does.
    pub composite: OverRuns,
}

/// The Keyword-Prioritized Correction Score with one weight of the keywords.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kpcs {
    pub alpha: f64,
    /// Eq. 9, and 0 where none of the keywords is there.
    pub eq9: Measured,
    /// Eq. 9 as it is printed, without that zero.
    pub ungated: Measured,
    /// The published code's: all keywords as one string, or 0.
    pub gated: Measured,
}

/// How a note's correction compares with the gold one.
pub enum Pairing<'a> {
    /// Both sides correct.
    Pair { reference: &'a str, candidate: &'a str },
    /// Neither does, the system because it says that no sentence is wrong.
    BothNothing,
    /// One does; or the note errored, or the system's flag, sentence or correction could not be read.
    Unpaired,
}

/// The gold correction and the system's.
pub fn pairing(note: &NoteLine) -> Pairing<'_> {
    let gold = note.gold.as_ref();
    let gold = gold.filter(|_| note.error.is_none() && note.flag.is_read());
    match (gold.map(|gold| &gold.correction), &note.correction) {
        (Some(Some(reference)), Some(candidate)) => Pairing::Pair { reference, candidate },
        (Some(None), None) if says_no_sentence(note) => Pairing::BothNothing,
        _ => Pairing::Unpaired,
    }
}

/// `None` where the note is no pair.
pub fn quality(note: &NoteLine, neural: &ScoresByPair) -> Option<Quality> {
    let Pairing::Pair { reference, candidate } = pairing(note) else { return None };
    let key = (reference.to_owned(), candidate.to_owned());
    Some(Quality::of(note.language, reference, candidate, neural.get(&key)))
}

/// What a correction of this note must name: what was given for it, else what its file says, else the words that the gold correction
/// changes.
fn keywords(note: &NoteLine, scorer: &CorrectionScorer) -> Vec<String> {
    if let Some(given) = scorer.keywords.by_note.get(&note.item) {
        return given.clone();
    }
    let Some(gold) = &note.gold else { return Vec::new() };
    match (&gold.keywords[..], &gold.sentence, &gold.correction) {
        ([], Some(sentence), Some(correction)) => {
            let changed = diff_keywords(sentence, correction);
            changed.into_iter().map(str::to_owned).collect()
        }
        (given, _, _) => given.to_vec(),
    }
}

/// The corrections of all graded notes, `[runs][notes]`, each compared with the gold one.
pub struct Corrections<'a> {
    notes: Vec<Vec<&'a NoteLine>>,
    /// `None` where the note is no pair.
    qualities: Vec<Vec<Option<Quality>>>,
    is_medec: bool,
    scorer: &'a CorrectionScorer,
}

impl<'a> Corrections<'a> {
    pub fn of(outcomes: &'a Outcomes<'_>, scorer: &'a CorrectionScorer) -> Corrections<'a> {
        let notes = outcomes.notes();
        let of_run = |run: &Vec<&NoteLine>| {
            let notes = run.iter();
            notes.map(|note| quality(note, &scorer.neural)).collect()
        };
        Corrections {
            qualities: notes.iter().map(of_run).collect(),
            notes,
            is_medec: outcomes.is_medec(),
            scorer,
        }
    }

    /// What a pair scores; `alpha` is the keywords' weight in KPCS.
    fn score(
        &self,
        note: &NoteLine,
        quality: &Quality,
        measure: Measure,
        alpha: f64,
    ) -> Option<f64> {
        let similarity = || quality.aggregate(self.is_medec);
        let words = || keywords(note, self.scorer);
        let correction = note.correction.as_deref();
        match measure {
            Measure::Aggregate => similarity(),
            // Where nothing is to be named, nothing was.
            Measure::Kpcs => Some(kpcs(&words(), correction?, similarity()?, alpha).unwrap_or(0.0)),
            Measure::KpcsUngated => Some(kpcs_ungated(&words(), correction?, similarity()?, alpha)),
            Measure::KpcsGated => {
                let words = words().join(" ");
                Some(kpcs_gated(&words, correction?, similarity()?, alpha))
            }
            of_texts => quality.get(of_texts),
        }
    }

    /// Every note's part in the composite, `[runs][notes]`; `None` where the measure has no score for a pair, or no weights.
    pub fn parts(&self, measure: Measure, alpha: f64) -> Option<Vec<Vec<f64>>> {
        let part = |(note, quality): (&&NoteLine, &Option<Quality>)| match (pairing(note), quality)
        {
            (Pairing::BothNothing, _) => Some(1.0),
            (Pairing::Pair { .. }, Some(quality)) => self.score(note, quality, measure, alpha),
            _ => Some(0.0),
        };
        let runs = self.notes.iter().zip(&self.qualities);
        let runs = runs.map(|(notes, qualities)| notes.iter().zip(qualities).map(part).collect());
        self.scorer.has(measure).then(|| runs.collect())?
    }

    /// `None` where the measure has no score for a pair, or there are no notes.
    pub fn measured(&self, measure: Measure, alpha: f64) -> Option<Measured> {
        let parts = self.parts(measure, alpha)?;
        let of_pairs = |(parts, qualities): (&Vec<f64>, &Vec<Option<Quality>>)| {
            let pairs = parts.iter().zip(qualities);
            let pairs = pairs.filter(|(_, quality)| quality.is_some());
            mean(&pairs.map(|(part, _)| *part).collect::<Vec<_>>())
        };
        let subset = parts.iter().zip(&self.qualities).map(of_pairs);
        Some(Measured {
            measure,
            subset: subset.collect::<Option<Vec<_>>>().and_then(OverRuns::of),
            composite: OverRuns::of(parts.iter().map(|run| mean(run)).collect::<Option<_>>()?)?,
        })
    }

    fn count(&self, is: fn(&Pairing<'_>) -> bool) -> Vec<usize> {
        let runs = self.notes.iter();
        runs.map(|run| run.iter().filter(|note| is(&pairing(note))).count()).collect()
    }
}

impl Correction {
    /// `None` without graded notes.
    pub fn of(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> Option<Correction> {
        let corrections = Corrections::of(outcomes, scorer);
        let notes = || corrections.notes.iter().flatten();
        notes().next()?;
        // A measure that no note's language has has no figure, even where no note is a pair.
        let has_language = |measure: &Measure| notes().any(|note| measure.is_of(note.language));
        let measures = Measure::of_texts().filter(has_language);
        let measures = measures.chain([Measure::Aggregate]);
        let kpcs = scorer.alphas.iter().map(|alpha| {
            Some(Kpcs {
                alpha: *alpha,
                eq9: corrections.measured(Measure::Kpcs, *alpha)?,
                ungated: corrections.measured(Measure::KpcsUngated, *alpha)?,
                gated: corrections.measured(Measure::KpcsGated, *alpha)?,
            })
        });
        let mut golds = notes().filter_map(|note| note.gold.as_ref());
        Some(Correction {
            n_pairs: corrections.count(|one| matches!(one, Pairing::Pair { .. })),
            n_correct_na: corrections.count(|one| matches!(one, Pairing::BothNothing)),
            measures: measures.filter_map(|measure| corrections.measured(measure, 0.0)).collect(),
            kpcs: kpcs.flatten().collect(),
            keywords_are_changed_words: scorer.keywords.by_note.is_empty()
                && golds.all(|gold| gold.keywords.is_empty()),
        })
    }

    pub fn measure(&self, measure: Measure) -> Option<&Measured> {
        self.measures.iter().find(|one| one.measure == measure)
    }
}
