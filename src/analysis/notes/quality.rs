//! How alike a correction is to the gold one, by every measure whose weights are at hand.

use std::collections::BTreeMap;

use crate::analysis::metrics::MetricsError;
use crate::analysis::metrics::rouge::Rouge;
use crate::analysis::metrics::rouge_chinese::rouge_chinese;
use crate::analysis::metrics::rouge_score::rouge_score;
use crate::analysis::metrics::rouge_set::rouge_set;
use crate::record::Language;

/// The measures in the order of tables: what files call them, and what people do.
pub const MEASURES: [(&str, &str); 8] = [
    ("rouge1", "ROUGE-1"),
    ("rouge2", "ROUGE-2"),
    ("rougeL", "ROUGE-L"),
    ("rouge1_stemmed", "ROUGE-1, stemmed"),
    ("rouge2_stemmed", "ROUGE-2, stemmed"),
    ("rougeL_stemmed", "ROUGE-L, stemmed"),
    ("bertscore", "BERTScore"),
    ("bleurt", "BLEURT"),
];

/// The ROUGE-1 of the published code: with stems for MEDEC, without for MedErrBench.
pub fn rouge1(is_medec: bool) -> &'static str {
    match is_medec {
        true => "rouge1_stemmed",
        false => "rouge1",
    }
}

/// Scores of one pair, each from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality {
    /// The Python package `rouge`, in Chinese `rouge-chinese`.
    pub rouge: Rouge,
    /// The package `rouge-score`; English alone has its stems.
    pub stemmed: Option<Rouge>,
    pub bertscore: Option<f64>,
    pub bleurt: Option<f64>,
}

/// What learned measures say of a pair; `None` without their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    pub bertscore: Option<f64>,
    pub bleurt: Option<f64>,
}

/// What learned measures say, by reference and candidate.
pub type LearnedScores = BTreeMap<(String, String), Learned>;

/// What corrections are measured by, beside the notes themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// Empty without the weights of BERTScore and BLEURT.
    pub learned: LearnedScores,
    /// The keywords' weights in KPCS.
    pub alphas: Vec<f64>,
    /// Keywords of notes by their ids, where others than the file's, or the changed words, are to count.
    pub keywords: BTreeMap<String, Vec<String>>,
}

impl Default for Gauge {
    /// Table 12's weights.
    fn default() -> Gauge {
        Gauge {
            learned: LearnedScores::new(),
            alphas: vec![0.2, 0.5, 0.8],
            keywords: BTreeMap::new(),
        }
    }
}

impl Quality {
    /// # Errors
    /// None but a bug: empty texts score 0.
    pub fn of(language: Language, reference: &str, candidate: &str, learned: Learned) -> Quality {
        // `rouge` refuses what has no words; a correction of full stops alone has nothing in common with any.
        let none = |_: MetricsError| Ok::<_, ()>(Rouge::default());
        let rouge = match language {
            Language::Chinese => rouge_chinese(candidate, reference),
            Language::English | Language::Arabic => rouge_set(candidate, reference),
        };
        let stemmed = match language {
            Language::English => Some(rouge_score(candidate, reference)),
            Language::Arabic | Language::Chinese => None,
        };
        Quality {
            rouge: rouge.or_else(none).unwrap_or_default(),
            stemmed,
            bertscore: learned.bertscore.map(|score| score.clamp(0.0, 1.0)),
            bleurt: learned.bleurt.map(|score| score.clamp(0.0, 1.0)),
        }
    }

    /// By the measure's name in [`MEASURES`].
    pub fn get(&self, measure: &str) -> Option<f64> {
        let stemmed = self.stemmed.as_ref();
        match measure {
            "rouge1" => Some(self.rouge.rouge1.f),
            "rouge2" => Some(self.rouge.rouge2.f),
            "rougeL" => Some(self.rouge.rouge_l.f),
            "rouge1_stemmed" => stemmed.map(|rouge| rouge.rouge1.f),
            "rouge2_stemmed" => stemmed.map(|rouge| rouge.rouge2.f),
            "rougeL_stemmed" => stemmed.map(|rouge| rouge.rouge_l.f),
            "bertscore" => self.bertscore,
            "bleurt" => self.bleurt,
            _ => None,
        }
    }

    /// The mean of ROUGE-1, BERTScore and BLEURT: AggregateScore, and Eq. 8's M. The published code takes stems for MEDEC and none for
    /// MedErrBench. `None` unless all three are at hand.
    pub fn aggregate(&self, is_medec: bool) -> Option<f64> {
        let rouge1 = match (&self.stemmed, is_medec) {
            (Some(stemmed), true) => stemmed.rouge1.f,
            _ => self.rouge.rouge1.f,
        };
        Some((rouge1 + self.bertscore? + self.bleurt?) / 3.0)
    }
}
