//! How good the corrections are (MedGuards, §3.4 and §4; MEDIQA-CORR 2024's scorer): means over the pairs, and composites in which notes
//! that neither side corrects count as 1.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::figures::{NoteFigures, Rows};
use super::quality::{CorrectionScorer, Measure, Quality, ScoresByPair};
use super::verdict::says_no_sentence;
use crate::analysis::facts::Facts;
use crate::analysis::metrics::kpcs::{ALPHAS, kpcs, kpcs_gated};
use crate::analysis::metrics::over_runs::{OverRuns, mean};
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::{Labelled, Table};
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

/// The corrections of all graded notes, each compared with the gold one.
pub struct Corrections<'a> {
    /// Each note, and how alike its correction is; `None` where it is no pair.
    notes: Facts<(&'a NoteLine, Option<Quality>)>,
    is_medec: bool,
    scorer: &'a CorrectionScorer,
}

impl<'a> Corrections<'a> {
    pub fn of(outcomes: &Outcomes<'a>, scorer: &'a CorrectionScorer) -> Corrections<'a> {
        let notes = outcomes.notes().map(|note| (*note, quality(note, &scorer.neural)));
        Corrections { notes, is_medec: outcomes.is_medec(), scorer }
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
            Measure::KpcsGated => {
                let words = words().join(" ");
                Some(kpcs_gated(&words, correction?, similarity()?, alpha))
            }
            of_texts => quality.get(of_texts),
        }
    }

    /// Every note's part in the composite, and whether it is a pair; `None` where the measure has no score for a pair, or no weights.
    pub fn parts(&self, measure: Measure, alpha: f64) -> Option<Facts<(f64, bool)>> {
        let part = |(note, quality): &(&NoteLine, Option<Quality>)| match (pairing(note), quality) {
            (Pairing::BothNothing, _) => Some((1.0, false)),
            (Pairing::Pair { .. }, Some(quality)) => {
                Some((self.score(note, quality, measure, alpha)?, true))
            }
            _ => Some((0.0, false)),
        };
        let runs = self.notes.0.iter().map(|run| run.iter().map(part).collect::<Option<_>>());
        self.scorer.has(measure).then(|| runs.collect::<Option<_>>().map(Facts))?
    }

    /// `None` where the measure has no score for a pair, or there are no notes.
    pub fn measured(&self, measure: Measure, alpha: f64) -> Option<Measured> {
        let parts = self.parts(measure, alpha)?;
        let means = |parts: &Facts<(f64, bool)>| {
            parts.over_runs(|run| mean(&run.iter().map(|one| one.0).collect::<Vec<_>>()))
        };
        let (subset, composite) = (means(&parts.only(|one| one.1)), means(&parts)?);
        Some(Measured { measure, subset, composite })
    }

    fn count(&self, is: fn(&Pairing<'_>) -> bool) -> Vec<usize> {
        let runs = self.notes.0.iter();
        runs.map(|run| run.iter().filter(|one| is(&pairing(one.0))).count()).collect()
    }
}

impl Correction {
    /// `None` without graded notes.
    pub fn of(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> Option<Correction> {
        let corrections = Corrections::of(outcomes, scorer);
        let notes = || corrections.notes.iter().map(|(note, _)| *note);
        notes().next()?;
        // A measure that no note's language has has no figure, even where no note is a pair.
        let has_language = |measure: &Measure| notes().any(|note| measure.is_of(note.language));
        let measures = Measure::of_texts().filter(has_language);
        let measures = measures.chain([Measure::Aggregate]);
        let kpcs = ALPHAS.into_iter().map(|alpha| {
            Some(Kpcs {
                alpha,
                eq9: corrections.measured(Measure::Kpcs, alpha)?,
                gated: corrections.measured(Measure::KpcsGated, alpha)?,
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

/// What is said of a measure without weights.
const NOT_COMPUTED: &str = "not computed: needs its model in --scorers DIR";

pub(super) fn correction_table(entries: Rows<'_>) -> Option<Table> {
    let title = "Correction: how similar to the gold correction?";
    let found = entries.iter().filter_map(|entry| {
        let correction = entry.of.correction.as_ref()?;
        Some((entry, correction, lines(correction)))
    });
    let found: Vec<_> = found.collect();
    let rows = found
        .iter()
        .flat_map(|(entry, _, lines)| lines.iter().map(move |line| (entry.group.clone(), line)));
    let counts = found.iter().map(|(entry, correction, _)| counts(entry, correction));
    let missing = found.iter().filter_map(|(entry, ..)| missing_weights(entry.of)).unique();
    Table::grouped("correction", title, rows)
        .text("measure", |(label, _)| label)
        .spread("subset", |(_, found)| found.subset.as_ref())
        .spread("composite", |(_, found)| &found.composite)
        .note("ROUGE is F1, as the published code has it, and ROUGE-1 its recall too, which A.1 names; stems are of English alone. AggregateScore is the mean of ROUGE-1, BERTScore and BLEURT. KPCS, Eq. 9, is 0 where none of the keywords is there. Gated, as in the published code: all keywords as one string, or nothing.")
        .notes(counts)
        .notes(missing.map(|told| told + "."))
        .unless_empty()
}

/// What was computed, each with its name.
fn lines(correction: &Correction) -> Vec<(String, &Measured)> {
    let measures = correction.measures.iter().map(|one| (one.measure.label().to_owned(), one));
    let kpcs = correction.kpcs.iter().flat_map(|kpcs| {
        [("Eq. 9", &kpcs.eq9), ("gated", &kpcs.gated)]
            .map(|(form, found)| (format!("KPCS, α = {}, {form}", kpcs.alpha), found))
    });
    measures.chain(kpcs).collect()
}

fn counts(entry: &Labelled<'_, NoteFigures>, correction: &Correction) -> String {
    let sum = |counts: &[usize]| counts.iter().sum::<usize>();
    let heading = match entry.group.as_str() {
        "" => String::new(),
        heading => format!("{heading}. "),
    };
    format!(
        "{heading}Subset: mean over the {} pairs in which both sides correct. Composite: mean over all {} notes × runs, 1 for each of the {} that neither side corrects, 0 where only one does. KPCS takes as keywords {}.",
        sum(&correction.n_pairs),
        entry.of.n_graded * correction.n_pairs.len(),
        sum(&correction.n_correct_na),
        match correction.keywords_are_changed_words {
            true => "the words that the gold correction changes",
            false => {
                "those given by the recipe or with --keywords, else those in the notes' file, matched exactly; where there are none, the words that the gold correction changes"
            }
        },
    )
}

/// What is said where BERTScore, BLEURT or both have no weights.
fn missing_weights(figures: &NoteFigures) -> Option<String> {
    let correction = figures.correction.as_ref()?;
    let mut names = vec![Measure::BertScore, Measure::Bleurt];
    names.retain(|measure| correction.measure(*measure).is_none());
    (!names.is_empty()).then(|| {
        format!(
            "{}, and with {} AggregateScore and KPCS: {NOT_COMPUTED}",
            names.iter().map(|measure| measure.label()).join(" and "),
            if names.len() == 1 { "it" } else { "them" },
        )
    })
}
