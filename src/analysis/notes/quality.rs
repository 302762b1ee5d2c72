//! How similar a correction is to the gold one, by every measure whose weights are there.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::analysis::metrics::rouge::{rouge_chinese, rouge_score, rouge_set};
use crate::data::json;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::outside;
use crate::record::Language;

/// A measure of what is said of notes, of corrections but for the first two. Files call it by its serialised name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Detection,
    Localisation,
    Rouge1,
    Rouge2,
    #[serde(rename = "rougeL")]
    RougeL,
    Rouge1Stemmed,
    Rouge2Stemmed,
    #[serde(rename = "rougeL_stemmed")]
    RougeLStemmed,
    /// The recall of [`Measure::Rouge1`], which the paper's A.1 names; its code takes F1.
    Rouge1Recall,
    /// The recall of [`Measure::Rouge1Stemmed`].
    Rouge1StemmedRecall,
    /// With the model that the published code takes for the language.
    #[serde(rename = "bertscore")]
    BertScore,
    /// Of Arabic, with bert-base-multilingual-cased, which bert-score itself takes for it.
    #[serde(rename = "bertscore_multilingual")]
    BertScoreMultilingual,
    Bleurt,
    Aggregate,
    /// Eq. 9: the share of the keywords; 0 where there is none of them.
    Kpcs,
    /// KPCS of the published code: all keywords as one string, or nothing.
    KpcsGated,
}

impl Measure {
    /// As people write each that is no KPCS, in the order of tables.
    const LABELS: [(Measure, &str); 14] = [
        (Measure::Detection, "detection"),
        (Measure::Localisation, "localisation"),
        (Measure::Rouge1, "ROUGE-1"),
        (Measure::Rouge2, "ROUGE-2"),
        (Measure::RougeL, "ROUGE-L"),
        (Measure::Rouge1Stemmed, "ROUGE-1, stemmed"),
        (Measure::Rouge2Stemmed, "ROUGE-2, stemmed"),
        (Measure::RougeLStemmed, "ROUGE-L, stemmed"),
        (Measure::Rouge1Recall, "ROUGE-1 recall"),
        (Measure::Rouge1StemmedRecall, "ROUGE-1 recall, stemmed"),
        (Measure::BertScore, "BERTScore"),
        (Measure::BertScoreMultilingual, "BERTScore, multilingual BERT"),
        (Measure::Bleurt, "BLEURT"),
        (Measure::Aggregate, "AggregateScore"),
    ];

    /// Those of a pair of texts alone, in the order of tables.
    pub fn of_texts() -> impl Iterator<Item = Measure> {
        let all = Measure::LABELS.iter().map(|(measure, _)| *measure);
        all.filter(|measure| (Measure::Rouge1..Measure::Aggregate).contains(measure))
    }

    /// Whether it needs the weights of BERTScore or BLEURT.
    pub fn is_neural(self) -> bool {
        // Every one behind those of ROUGE.
        self >= Measure::BertScore
    }

    /// As people write it.
    pub fn label(self) -> &'static str {
        let mut all = Measure::LABELS.iter();
        all.find(|(measure, _)| *measure == self).map_or("KPCS", |(_, label)| label)
    }

    /// ROUGE-1 as the published code has it, and what else it is.
    pub fn as_published(self, is_medec: bool) -> Measure {
        if self == Measure::Rouge1 { Measure::rouge1(is_medec) } else { self }
    }

    /// The ROUGE-1 of the published code: with stems for MEDEC, without for MedErrBench.
    pub fn rouge1(is_medec: bool) -> Measure {
        if is_medec { Measure::Rouge1Stemmed } else { Measure::Rouge1 }
    }

    /// Whether texts of the language have it.
    pub fn is_of(self, language: Language) -> bool {
        use Measure::{Rouge1Stemmed, Rouge1StemmedRecall, Rouge2Stemmed, RougeLStemmed};
        match self {
            Rouge1Stemmed | Rouge2Stemmed | RougeLStemmed | Rouge1StemmedRecall => {
                language == Language::English
            }
            Measure::BertScoreMultilingual => language == Language::Arabic,
            _ => true,
        }
    }
}

/// Scores of one pair, each from 0 to 1, by those of [`Measure::of_texts`] that its language has and whose weights are there.
#[derive(Clone, Debug, PartialEq)]
pub struct Quality(BTreeMap<Measure, f64>);

/// What neural measures say of a pair, those whose weights are there.
pub type NeuralScores = BTreeMap<Measure, f64>;

/// Neural scores by reference and candidate.
pub type ScoresByPair = BTreeMap<(String, String), NeuralScores>;

/// What corrections are scored with, beside the notes themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorrectionScorer {
    /// Empty without the weights of BERTScore and BLEURT.
    pub neural: ScoresByPair,
    /// Keywords which replace those of the notes' file and the changed words.
    pub keywords: GivenKeywords,
}

impl CorrectionScorer {
    /// Whether any pair has a score of the measure: without its weights it has no figure, even where no note is a pair.
    pub fn has(&self, measure: Measure) -> bool {
        match measure {
            Measure::BertScore | Measure::BertScoreMultilingual | Measure::Bleurt => {
                self.neural.values().any(|scores| scores.contains_key(&measure))
            }
            made if made.is_neural() => self.has(Measure::BertScore) && self.has(Measure::Bleurt),
            _ => true,
        }
    }
}

impl Quality {
    /// ROUGE of the Python package `rouge`, in Chinese of `rouge-chinese`; English alone has the stems of `rouge-score`.
    pub fn of(
        language: Language,
        reference: &str,
        candidate: &str,
        neural: Option<&NeuralScores>,
    ) -> Quality {
        let rouge = match language {
            Language::Chinese => rouge_chinese(candidate, reference),
            Language::English | Language::Arabic => rouge_set(candidate, reference),
        };
        // `rouge` refuses what has no words; a correction of full stops alone has nothing in common with any.
        let rouge = rouge.unwrap_or_default();
        let mut scores = BTreeMap::from([
            (Measure::Rouge1, rouge.rouge1.f),
            (Measure::Rouge2, rouge.rouge2.f),
            (Measure::RougeL, rouge.rouge_l.f),
            (Measure::Rouge1Recall, rouge.rouge1.recall),
        ]);
        if language == Language::English {
            let stemmed = rouge_score(candidate, reference);
            scores.extend([
                (Measure::Rouge1Stemmed, stemmed.rouge1.f),
                (Measure::Rouge2Stemmed, stemmed.rouge2.f),
                (Measure::RougeLStemmed, stemmed.rouge_l.f),
                (Measure::Rouge1StemmedRecall, stemmed.rouge1.recall),
            ]);
        }
        let neural = neural.into_iter().flatten();
        scores.extend(neural.map(|(&measure, &score)| (measure, score.clamp(0.0, 1.0))));
        Quality(scores)
    }

    /// By one of [`Measure::of_texts`].
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.0.get(&measure).copied()
    }

    /// AggregateScore, and Eq. 8's M: the mean of ROUGE-1 as the published code has it, BERTScore and BLEURT. `None` unless all three
    /// are there.
    pub fn aggregate(&self, is_medec: bool) -> Option<f64> {
        let rouge1 = self.get(Measure::rouge1(is_medec)).or(self.get(Measure::Rouge1))?;
        Some((rouge1 + self.get(Measure::BertScore)? + self.get(Measure::Bleurt)?) / 3.0)
    }
}

/// Keywords that corrections must name, of one or several files beside the notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenKeywords {
    /// By note id.
    pub by_note: BTreeMap<String, Vec<String>>,
    pub files: Vec<KeywordFile>,
}

/// What results keep of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeywordFile {
    pub path: String,
    pub sha256: String,
    /// Notes that it has keywords of.
    pub notes: usize,
}

impl GivenKeywords {
    /// # Errors
    /// A file that is not there, or is no object from note id to a list of keywords.
    pub fn read(&mut self, path: &Path) -> Result<(), Failure> {
        let bytes = outside::file(path)?;
        let read: BTreeMap<String, Vec<String>> = json::read(&bytes).map_err(|error| {
            Failure::usage(
                format!("{}: {error}", path.display()),
                "expected a JSON object from note id to a list of keywords",
            )
        })?;
        self.files.push(KeywordFile {
            path: path.display().to_string(),
            sha256: sha256(&bytes),
            notes: read.len(),
        });
        self.by_note.extend(read);
        Ok(())
    }
}
