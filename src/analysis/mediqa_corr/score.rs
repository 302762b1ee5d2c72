//! A submission beside the gold: what agrees, and the corrections to be compared.

use super::SubmissionError;
use super::figures::{Family, Figures};
use super::submission::{NOTHING, Submission};
use crate::analysis::metrics::MetricsError;
use crate::analysis::metrics::rouge::Rouge;
use crate::analysis::metrics::rouge_set::rouge_set;
use crate::data::Note;

/// What is right of one note, as the official scorer has it: texts, compared as such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub id: String,
    pub flag: &'static str,
    pub sentence_id: String,
    /// `NA` for a note without an error.
    pub correction: String,
}

impl Reference {
    /// # Errors
    ///
    /// A note without gold.
    pub fn of(note: &Note) -> Result<Reference, SubmissionError> {
        let gold = note.gold.as_ref().ok_or_else(|| SubmissionError::NoGold {
            id: note.id.clone(),
        })?;
        let id = note.id.clone();
        Ok(match &gold.error {
            Some(error) => Reference {
                id,
                flag: "1",
                sentence_id: error.sentence_id.to_string(),
                correction: error.correction.clone(),
            },
            None => Reference {
                id,
                flag: "0",
                sentence_id: "-1".to_owned(),
                correction: NOTHING.to_owned(),
            },
        })
    }
}

/// A correction that a run gives where one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    pub candidate: &'a str,
    pub reference: &'a str,
}

/// How a submission compares with the references, but for how alike the corrections are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement<'a> {
    pub n_references: usize,
    /// References without a valid line.
    pub n_missing: usize,
    pub n_invalid_lines: usize,
    /// Lines whose id came before; the last counts.
    pub n_repeated: usize,
    /// Ids that no reference has; they count nowhere.
    pub n_unknown: usize,
    pub n_flags_right: usize,
    pub n_sentences_right: usize,
    /// Notes where both correct nothing.
    pub n_correct_na: usize,
    /// In the references' order.
    pub pairs: Vec<Pair<'a>>,
}

/// Of every pair, in order, how alike models find the two; scores beyond 0 to 1 are clipped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    pub bertscore: Option<Vec<f64>>,
    pub bleurt: Option<Vec<f64>>,
}

/// Compares a submission with the references. A missing note has neither the right flag nor the right sentence; the
/// sentence is compared whatever the flags say. Where only one of the two corrects anything, nothing is compared.
pub fn compare<'a>(references: &'a [Reference], submission: &'a Submission) -> Agreement<'a> {
    let mut agreement = Agreement {
        n_references: references.len(),
        n_invalid_lines: submission.invalid_lines.len(),
        n_repeated: submission.n_repeated,
        ..Agreement::default()
    };
    for reference in references {
        let Some(prediction) = submission.predictions.get(&reference.id) else {
            agreement.n_missing += 1;
            continue;
        };
        agreement.n_flags_right += usize::from(prediction.flag == reference.flag);
        agreement.n_sentences_right += usize::from(prediction.sentence_id == reference.sentence_id);
        let (candidate, reference) = (&*prediction.correction, &*reference.correction);
        match (candidate == NOTHING, reference == NOTHING) {
            (true, true) => agreement.n_correct_na += 1,
            (false, false) => agreement.pairs.push(Pair {
                candidate,
                reference,
            }),
            _ => {}
        }
    }
    let found = agreement.n_references - agreement.n_missing;
    agreement.n_unknown = submission.predictions.len() - found;
    agreement
}

impl Agreement<'_> {
    /// All figures; `learned` holds as many scores as there are pairs.
    ///
    /// # Errors
    ///
    /// No references, or another number of scores.
    pub fn figures(&self, learned: &Learned) -> Result<Figures, MetricsError> {
        if self.n_references == 0 {
            return Err(MetricsError::Empty {
                figure: "MEDIQA-CORR",
                what: "references",
            });
        }
        let rouge: Vec<Option<Rouge>> = self
            .pairs
            .iter()
            .map(|pair| rouge_set(pair.candidate, pair.reference).ok())
            .collect();
        let of_rouge = |f: fn(&Rouge) -> f64| -> Vec<f64> {
            let scores = rouge.iter().map(|rouge| rouge.as_ref().map_or(0.0, f));
            scores.collect()
        };
        let rouge1 = of_rouge(|rouge| rouge.rouge1.f);
        let bertscore = self.clipped("BERTScore", learned.bertscore.as_deref())?;
        let bleurt = self.clipped("BLEURT", learned.bleurt.as_deref())?;
        let aggregate: Option<Vec<f64>> = match (&bertscore, &bleurt) {
            (Some(bertscore), Some(bleurt)) => {
                let triples = rouge1.iter().zip(bertscore).zip(bleurt);
                let means = triples
                    .map(|((rouge1, bertscore), bleurt)| (rouge1 + bertscore + bleurt) / 3.0);
                Some(means.collect())
            }
            _ => None,
        };
        let share = |right: usize| right as f64 / self.n_references as f64;
        let family = |scores: &[f64]| self.family(scores);
        Ok(Figures {
            flag_accuracy: share(self.n_flags_right),
            sentence_accuracy: share(self.n_sentences_right),
            rouge1: self.family(&rouge1),
            rouge2: self.family(&of_rouge(|rouge| rouge.rouge2.f)),
            rouge_l: self.family(&of_rouge(|rouge| rouge.rouge_l.f)),
            bertscore: bertscore.as_deref().map(family),
            bleurt: bleurt.as_deref().map(family),
            aggregate: aggregate.as_deref().map(family),
            n_references: self.n_references,
            n_missing: self.n_missing,
            n_invalid_lines: self.n_invalid_lines,
            n_repeated: self.n_repeated,
            n_unknown: self.n_unknown,
            n_pairs: self.pairs.len(),
            n_correct_na: self.n_correct_na,
            n_without_words: rouge.iter().filter(|rouge| rouge.is_none()).count(),
        })
    }

    fn clipped(
        &self,
        figure: &'static str,
        scores: Option<&[f64]>,
    ) -> Result<Option<Vec<f64>>, MetricsError> {
        let Some(scores) = scores else {
            return Ok(None);
        };
        if scores.len() != self.pairs.len() {
            return Err(MetricsError::Unequal {
                figure,
                what: "corrections",
                expected: self.pairs.len(),
                found: scores.len(),
            });
        }
        let clipped = scores.iter().map(|score| score.clamp(0.0, 1.0));
        Ok(Some(clipped.collect()))
    }

    fn family(&self, scores: &[f64]) -> Family {
        let sum: f64 = scores.iter().sum();
        Family {
            subset: (!scores.is_empty()).then(|| sum / scores.len() as f64),
            composite: (sum + self.n_correct_na as f64) / self.n_references as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn references() -> Vec<Reference> {
        let reference = |id: &str, sentence_id: &str, correction: &str| Reference {
            id: id.to_owned(),
            flag: if correction == NOTHING { "0" } else { "1" },
            sentence_id: sentence_id.to_owned(),
            correction: correction.to_owned(),
        };
        vec![
            reference("a", "2", "It is malaria."),
            reference("b", "-1", NOTHING),
            reference("c", "0", "It is gout."),
            reference("d", "-1", NOTHING),
        ]
    }

    fn figures(run: &str, learned: &Learned) -> Result<Figures, MetricsError> {
        let submission = Submission::parse(run, Path::new("run.txt")).unwrap();
        compare(&references(), &submission).figures(learned)
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-7
    }

    #[test]
    fn everything_right_gives_1() {
        let run = "a 1 2 It is malaria.\nb 0 -1 NA\nc 1 0 \"It is gout.\"\nd 0 -1 x\n";
        let figures = figures(run, &Learned::default()).unwrap();
        assert_eq!(
            (figures.flag_accuracy, figures.sentence_accuracy),
            (1.0, 1.0)
        );
        for family in [figures.rouge1, figures.rouge2, figures.rouge_l] {
            assert!(close(family.subset.unwrap(), 1.0) && close(family.composite, 1.0));
        }
        assert_eq!((figures.n_pairs, figures.n_correct_na), (2, 2));
        assert!(figures.aggregate.is_none());
    }

    #[test]
    fn what_is_missing_is_wrong_and_the_sentence_counts_whatever_the_flag() {
        // b: the right sentence under the wrong flag, and a correction where none is due.
        let run = "a 1 2 It was gout.\nb 1 -1 x\nbad line\nz 1 1 x\na 1 2 It is gout.\n";
        let figures = figures(run, &Learned::default()).unwrap();
        assert_eq!(
            (figures.flag_accuracy, figures.sentence_accuracy),
            (0.25, 0.5)
        );
        assert_eq!((figures.n_missing, figures.n_invalid_lines), (2, 1));
        assert_eq!((figures.n_repeated, figures.n_unknown), (1, 1));
        assert!(close(figures.rouge1.subset.unwrap(), 2.0 / 3.0));
        assert!(close(figures.rouge1.composite, 2.0 / 3.0 / 4.0));
    }

    #[test]
    fn nothing_to_compare_leaves_the_subset_out() {
        let figures = figures("a 1 2 NA\nb 0 3 NA\n", &Learned::default()).unwrap();
        assert_eq!(figures.rouge1.subset, None);
        assert_eq!(figures.rouge1.composite, 0.25);
        assert_eq!(figures.sentence_accuracy, 0.25);
    }

    #[test]
    fn a_correction_of_full_stops_alone_counts_0() {
        let figures = figures("a 1 2 ...\nc 1 0 It is gout.\n", &Learned::default()).unwrap();
        assert_eq!((figures.n_pairs, figures.n_without_words), (2, 1));
        assert!(close(figures.rouge1.subset.unwrap(), 0.5));
    }

    #[test]
    fn learned_scores_are_clipped_and_aggregated_pair_by_pair() {
        let run = "a 1 2 It is malaria.\nb 0 -1 NA\nc 1 0 x\n";
        let learned = Learned {
            bertscore: Some(vec![1.2, -0.5]),
            bleurt: Some(vec![0.7, 0.1]),
        };
        let figures = figures(run, &learned).unwrap();
        let family = |family: Option<Family>| family.unwrap();
        assert_eq!(family(figures.bertscore).subset, Some(0.5));
        assert_eq!(family(figures.bleurt).composite, (0.7 + 0.1 + 1.0) / 4.0);
        let aggregate = family(figures.aggregate);
        assert!(close(aggregate.subset.unwrap(), (2.7 + 0.1) / 3.0 / 2.0));
        assert!(close(aggregate.composite, ((2.7 + 0.1) / 3.0 + 1.0) / 4.0));
    }

    #[test]
    fn another_number_of_scores_is_refused() {
        let learned = Learned {
            bertscore: Some(vec![1.0]),
            bleurt: None,
        };
        let error = figures("b 0 -1 NA\n", &learned).unwrap_err();
        assert_eq!(
            error.to_string(),
            "BERTScore: 0 corrections on one side, 1 on the other"
        );
        let nothing = Agreement::default().figures(&Learned::default());
        assert!(nothing.is_err());
    }
}
