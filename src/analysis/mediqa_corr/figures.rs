//! The figures of a submission, as JSON and for people.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// One metric of corrections in both forms that are published; they are not comparable with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// The mean over the notes where a correction is due and one is given; `None` where there are none.
    pub subset: Option<f64>,
    /// The mean over all notes, where a note that is rightly left alone counts 1 and any other without a pair 0.
    pub composite: f64,
}

/// All figures are 0 to 1. JSON has every metric twice, as `rouge1_subset` and `rouge1_composite`, `null` where it was
/// not computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Over all references.
    pub flag_accuracy: f64,
    /// Over all references; for a note without an error -1 is right.
    pub sentence_accuracy: f64,
    pub rouge1: Family,
    pub rouge2: Family,
    pub rouge_l: Family,
    pub bertscore: Option<Family>,
    pub bleurt: Option<Family>,
    /// The mean of ROUGE-1, BERTScore and BLEURT; its subset form is the official ranking's.
    pub aggregate: Option<Family>,
    pub n_references: usize,
    pub n_missing: usize,
    pub n_invalid_lines: usize,
    pub n_repeated: usize,
    pub n_unknown: usize,
    pub n_pairs: usize,
    pub n_correct_na: usize,
    /// Pairs of which one has no words; the official scorer stops at them, here they count 0.
    pub n_without_words: usize,
}

impl Figures {
    /// Names as in JSON, and as people write them.
    fn metrics(&self) -> [(&'static str, &'static str, Option<Family>); 6] {
        [
            ("rouge1", "ROUGE-1", Some(self.rouge1)),
            ("rouge2", "ROUGE-2", Some(self.rouge2)),
            ("rougeL", "ROUGE-L", Some(self.rouge_l)),
            ("bertscore", "BERTScore", self.bertscore),
            ("bleurt", "BLEURT", self.bleurt),
            ("aggregate", "AggregateScore", self.aggregate),
        ]
    }

    fn counts(&self) -> [(&'static str, usize); 8] {
        [
            ("n_references", self.n_references),
            ("n_missing", self.n_missing),
            ("n_invalid_lines", self.n_invalid_lines),
            ("n_repeated", self.n_repeated),
            ("n_unknown", self.n_unknown),
            ("n_pairs", self.n_pairs),
            ("n_correct_na", self.n_correct_na),
            ("n_without_words", self.n_without_words),
        ]
    }

    /// Tables in Markdown; metrics that were not computed are left out.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "| | accuracy |\n|---|---|\n| flag | {:.4} |\n| sentence | {:.4} |\n\n\
             | corrections | subset | composite |\n|---|---|---|\n",
            self.flag_accuracy, self.sentence_accuracy
        );
        for (_, name, family) in self.metrics() {
            if let Some(Family { subset, composite }) = family {
                let subset = subset.map_or("–".to_owned(), |subset| format!("{subset:.4}"));
                text += &format!("| {name} | {subset} | {composite:.4} |\n");
            }
        }
        text += &format!(
            "\n{} notes: {} missing, {} rightly left alone, {} corrections compared (the subset)",
            self.n_references, self.n_missing, self.n_correct_na, self.n_pairs
        );
        for (count, what) in [
            (self.n_invalid_lines, "invalid lines"),
            (
                self.n_repeated,
                "lines whose id came before, of which the last counts",
            ),
            (self.n_unknown, "ids that the gold has not"),
            (self.n_without_words, "pairs without words, which count 0"),
        ] {
            if count > 0 {
                text += &format!("; {count} {what}");
            }
        }
        text + "\n"
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("flag_accuracy", &self.flag_accuracy)?;
        map.serialize_entry("sentence_accuracy", &self.sentence_accuracy)?;
        for (name, _, family) in self.metrics() {
            let subset = family.and_then(|family| family.subset);
            map.serialize_entry(&format!("{name}_subset"), &subset)?;
            let composite = family.map(|family| family.composite);
            map.serialize_entry(&format!("{name}_composite"), &composite)?;
        }
        for (name, count) in self.counts() {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}
