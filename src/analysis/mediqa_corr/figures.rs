//! The figures of a submission, as JSON and for people.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::analysis::notes::Measure;
use crate::analysis::table::Table;

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
    /// Lines whose id came before; the last counts.
    pub n_repeated: usize,
    /// Ids that no reference has; they count nowhere.
    pub n_unknown: usize,
    pub n_pairs: usize,
    /// Notes where both correct nothing.
    pub n_correct_na: usize,
    /// Pairs of which one has no words; the official scorer stops at them, here they count 0.
    pub n_without_words: usize,
}

impl SubmissionFigures {
    /// Tables in Markdown; metrics that were not computed are left out.
    pub fn markdown(&self) -> String {
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
        format!("{}\n{}", accuracies.markdown(), corrections.markdown())
    }
}

impl Counts {
    fn in_words(&self) -> String {
        let mut text = format!(
            "{} notes: {} missing, {} rightly left alone, {} corrections compared (the subset)",
            self.n_references, self.n_missing, self.n_correct_na, self.n_pairs
        );
        for (count, what) in [
            (self.n_invalid_lines, "invalid lines"),
            (self.n_repeated, "lines with the id of an earlier one, which they replace"),
            (self.n_unknown, "ids that the gold does not have"),
            (self.n_without_words, "pairs without words, which count 0"),
        ] {
            if count > 0 {
                text += &format!("; {count} {what}");
            }
        }
        text
    }
}

/// Every measure as its subset form and its composite.
fn twice<S: Serializer>(
    measures: &[(Measure, Option<SubsetAndComposite>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (measure, family) in measures {
        let name = measure.name();
        let subset = family.and_then(|family| family.subset);
        map.serialize_entry(&format!("{name}_subset"), &subset)?;
        let composite = family.map(|family| family.composite);
        map.serialize_entry(&format!("{name}_composite"), &composite)?;
    }
    map.end()
}
