//! A submission beside the gold: what agrees, and the corrections to be compared.

use serde::Serialize;
use serde::ser::{Error, SerializeMap, Serializer};

use super::submission::{NOTHING, Prediction, Submission};
use crate::analysis::metrics::over_runs::mean;
use crate::analysis::notes::{Measure, Quality, ScoresByPair};
use crate::analysis::table::Table;
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::record::Language;

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
    /// A note without gold.
    pub fn of(note: &Note) -> Result<Reference, Failure> {
        let no_gold = || Failure::refused(format!("note {} has no gold to score against", note.id));
        let gold = note.gold.as_ref().ok_or_else(no_gold)?;
        Ok(Reference {
            id: note.id.clone(),
            flag: if gold.flag { "1" } else { "0" },
            sentence_id: gold.sentence_id.map_or("-1".to_owned(), |id| id.to_string()),
            correction: gold.correction.clone().unwrap_or_else(|| NOTHING.to_owned()),
        })
    }
}

/// The corrections where one is due and one is given: the reference and the candidate, in the references' order.
pub fn pairs(references: &[Reference], submission: &Submission) -> Vec<(String, String)> {
    let pair = |reference: &Reference| {
        let candidate = &submission.predictions.get(&reference.id)?.correction;
        let is_pair = candidate != NOTHING && reference.correction != NOTHING;
        is_pair.then(|| (reference.correction.clone(), candidate.clone()))
    };
    references.iter().filter_map(pair).collect()
}

/// In the order of tables. AggregateScore, the mean of ROUGE-1, BERTScore and BLEURT, decides the official ranking by its subset form.
pub const MEASURES: [Measure; 6] = [
    Measure::Rouge1,
    Measure::Rouge2,
    Measure::RougeL,
    Measure::BertScore,
    Measure::Bleurt,
    Measure::Aggregate,
];

/// One metric of corrections in both forms that are published; they are not comparable with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubsetAndComposite {
    /// The mean over the notes where a correction is due and one is given; `None` where there are none.
    pub subset: Option<f64>,
    /// The mean over all notes, where a note that is rightly left alone counts 1 and any other without a pair 0.
    pub composite: f64,
}

/// All figures are 0 to 1. JSON has every metric twice, as `rouge1_subset` and `rouge1_composite`, `null` where it was
/// not computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubmissionFigures {
    /// Over all references.
    pub flag_accuracy: f64,
    /// Over all references; for a note without an error -1 is right.
    pub sentence_accuracy: f64,
    /// By [`MEASURES`]; `None` where the weights are not there.
    #[serde(flatten, serialize_with = "twice")]
    pub measures: Vec<(Measure, Option<SubsetAndComposite>)>,
    #[serde(flatten)]
    pub counts: Counts,
}

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub n_references: usize,
    /// References without a valid line.
    pub n_missing: usize,
    pub n_invalid_lines: usize,
    pub n_pairs: usize,
    /// Notes where both correct nothing.
    pub n_correct_na: usize,
}

impl SubmissionFigures {
    /// Of at least one reference; of neural measures only where `neural` has a score of every pair. A missing note has neither the right
    /// flag nor the right sentence; the sentence is compared whatever the flags say. Where only one of the two corrects anything, nothing
    /// is compared.
    pub fn of<'a>(
        references: &'a [Reference],
        submission: &'a Submission,
        neural: &ScoresByPair,
    ) -> SubmissionFigures {
        let given = |one: &'a Reference| Some((one, submission.predictions.get(&one.id)?));
        let found: Vec<(&Reference, &Prediction)> = references.iter().filter_map(given).collect();
        let count = |is: fn(&Reference, &Prediction) -> bool| {
            found.iter().filter(|(reference, given)| is(reference, given)).count()
        };
        let (n, pairs) = (references.len(), pairs(references, submission));
        let counts = Counts {
            n_references: n,
            n_missing: n - found.len(),
            n_invalid_lines: submission.invalid_lines.len(),
            n_pairs: pairs.len(),
            n_correct_na: count(|one, given| {
                one.correction == NOTHING && given.correction == NOTHING
            }),
        };
        // The shared task is in English.
        let quality = |pair: &(String, String)| {
            Quality::of(Language::English, &pair.0, &pair.1, neural.get(pair))
        };
        let qualities: Vec<Quality> = pairs.iter().map(quality).collect();
        let family = |measure: Measure| {
            let scores = qualities.iter().map(|quality| match measure {
                Measure::Aggregate => quality.aggregate(false),
                measure => quality.get(measure),
            });
            let scores = scores.collect::<Option<Vec<f64>>>();
            let scores = scores.filter(|_| !measure.is_neural() || !neural.is_empty());
            let family = scores.map(|scores| SubsetAndComposite {
                subset: mean(&scores),
                composite: (scores.iter().sum::<f64>() + counts.n_correct_na as f64) / n as f64,
            });
            (measure, family)
        };
        SubmissionFigures {
            flag_accuracy: count(|one, given| given.flag == one.flag) as f64 / n as f64,
            sentence_accuracy: count(|one, given| given.sentence_id == one.sentence_id) as f64
                / n as f64,
            measures: MEASURES.map(family).to_vec(),
            counts,
        }
    }

    /// Metrics that were not computed are left out.
    pub fn tables(&self) -> [Table; 2] {
        let shares = [("flag", self.flag_accuracy), ("sentence", self.sentence_accuracy)];
        let accuracies = Table::of("accuracy", "Accuracy", shares)
            .text("of the", |(what, _)| what)
            .number("accuracy", |(_, share)| share)
            .build();
        let computed =
            self.measures.iter().filter_map(|(measure, family)| Some((measure, (*family)?)));
        let corrections = Table::of("corrections", "Corrections", computed)
            .text("measure", |(measure, _)| measure.label())
            .number("subset", |(_, family)| family.subset)
            .number("composite", |(_, family)| family.composite)
            .note(self.counts.in_words())
            .build();
        [accuracies, corrections]
    }
}

impl Counts {
    fn in_words(&self) -> String {
        let Counts { n_references, n_missing, n_invalid_lines, n_pairs, n_correct_na } = self;
        format!(
            "{n_references} notes: {n_missing} missing ({n_invalid_lines} invalid lines), {n_correct_na} rightly left alone, {n_pairs} corrections compared (the subset)"
        )
    }
}

/// Every measure as its subset form and its composite.
fn twice<S: Serializer>(
    measures: &[(Measure, Option<SubsetAndComposite>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (measure, family) in measures {
        let name = serde_json::to_value(measure).map_err(S::Error::custom)?;
        let name = name.as_str().unwrap_or_default();
        let subset = family.and_then(|family| family.subset);
        map.serialize_entry(&format!("{name}_subset"), &subset)?;
        let composite = family.map(|family| family.composite);
        map.serialize_entry(&format!("{name}_composite"), &composite)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::analysis::notes::NeuralScores;

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

    impl SubmissionFigures {
        fn get(&self, measure: Measure) -> Option<SubsetAndComposite> {
            self.measures.iter().find(|(one, _)| *one == measure)?.1
        }
    }

    fn figures(run: &str, neural: &ScoresByPair) -> SubmissionFigures {
        let submission = Submission::parse(run, Path::new("run.txt")).unwrap();
        SubmissionFigures::of(&references(), &submission, neural)
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-7
    }

    #[test]
    fn everything_right_gives_1() {
        let run = "a 1 2 It is malaria.\nb 0 -1 NA\nc 1 0 \"It is gout.\"\nd 0 -1 x\n";
        let figures = figures(run, &ScoresByPair::new());
        assert_eq!((figures.flag_accuracy, figures.sentence_accuracy), (1.0, 1.0));
        for measure in [Measure::Rouge1, Measure::Rouge2, Measure::RougeL] {
            let family = figures.get(measure).unwrap();
            assert!(close(family.subset.unwrap(), 1.0) && close(family.composite, 1.0));
        }
        assert_eq!((figures.counts.n_pairs, figures.counts.n_correct_na), (2, 2));
        assert!(figures.get(Measure::Aggregate).is_none());
    }

    #[test]
    fn what_is_missing_is_wrong_and_the_sentence_counts_whatever_the_flag() {
        // b: the right sentence under the wrong flag, and a correction where none is due.
        let run = "a 1 2 It was gout.\nb 1 -1 x\nbad line\nz 1 1 x\na 1 2 It is gout.\n";
        let figures = figures(run, &ScoresByPair::new());
        assert_eq!((figures.flag_accuracy, figures.sentence_accuracy), (0.25, 0.5));
        assert_eq!((figures.counts.n_missing, figures.counts.n_invalid_lines), (2, 1));
        assert!(close(figures.get(Measure::Rouge1).unwrap().subset.unwrap(), 2.0 / 3.0));
        assert!(close(figures.get(Measure::Rouge1).unwrap().composite, 2.0 / 3.0 / 4.0));
    }

    #[test]
    fn nothing_to_compare_leaves_the_subset_out() {
        let figures = figures("a 1 2 NA\nb 0 3 NA\n", &ScoresByPair::new());
        assert_eq!(figures.get(Measure::Rouge1).unwrap().subset, None);
        assert_eq!(figures.get(Measure::Rouge1).unwrap().composite, 0.25);
        assert_eq!(figures.sentence_accuracy, 0.25);
    }

    #[test]
    fn a_correction_of_full_stops_alone_counts_0() {
        let figures = figures("a 1 2 ...\nc 1 0 It is gout.\n", &ScoresByPair::new());
        assert_eq!(figures.counts.n_pairs, 2);
        assert!(close(figures.get(Measure::Rouge1).unwrap().subset.unwrap(), 0.5));
    }

    #[test]
    fn neural_scores_are_clipped_and_aggregated_pair_by_pair() {
        let run = "a 1 2 It is malaria.\nb 0 -1 NA\nc 1 0 x\n";
        let neural = |bertscore: f64, bleurt: f64| {
            NeuralScores::from([(Measure::BertScore, bertscore), (Measure::Bleurt, bleurt)])
        };
        let pair = |text: &str, other: &str| (text.to_owned(), other.to_owned());
        let neural = ScoresByPair::from([
            (pair("It is malaria.", "It is malaria."), neural(1.2, 0.7)),
            (pair("It is gout.", "x"), neural(-0.5, 0.1)),
        ]);
        let figures = figures(run, &neural);
        let family = |measure: Measure| figures.get(measure).unwrap();
        assert_eq!(family(Measure::BertScore).subset, Some(0.5));
        assert_eq!(family(Measure::Bleurt).composite, (0.7 + 0.1 + 1.0) / 4.0);
        let aggregate = family(Measure::Aggregate);
        assert!(close(aggregate.subset.unwrap(), (2.7 + 0.1) / 3.0 / 2.0));
        assert!(close(aggregate.composite, ((2.7 + 0.1) / 3.0 + 1.0) / 4.0));
    }

    #[test]
    fn measures_without_a_score_of_every_pair_have_no_figure() {
        let some = ScoresByPair::from([(
            ("It is gout.".to_owned(), "x".to_owned()),
            NeuralScores::from([(Measure::BertScore, 1.0)]),
        )]);
        let both = figures("a 1 2 x\nc 1 0 x\n", &some);
        let one = figures("c 1 0 x\n", &some);
        assert!(both.get(Measure::BertScore).is_none());
        assert!(one.get(Measure::BertScore).is_some() && one.get(Measure::Bleurt).is_none());
    }
}
