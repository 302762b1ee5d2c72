//! BERTScore and BLEURT of the corrections in runs, by the weights that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::correction::{Pairing, pairing};
use super::quality::{NeuralScores, ScoresByPair};
use crate::analysis::outcomes::Outcomes;
use crate::encoder::EncoderError;
use crate::experiment::contents::Contents;
use crate::record::Language;
use crate::scorers::{BertScore, BertScoreModel, Bleurt};

/// The card of BLEURT's weights.
pub const BLEURT: &str = "bleurt-20";

/// What bert-score takes for a language.
pub fn bertscore_model(language: Language) -> BertScoreModel {
    match language {
        Language::English => BertScoreModel::ENGLISH,
        Language::Arabic => BertScoreModel::ARABIC,
        Language::Chinese => BertScoreModel::CHINESE,
    }
}

/// Pairs of reference and candidate, by language; each once.
pub type Pairs = BTreeMap<Language, BTreeSet<(String, String)>>;

/// Every pair of a graded note in these runs.
pub fn pairs<'a>(runs: impl IntoIterator<Item = &'a Contents>) -> Pairs {
    let mut pairs = Pairs::new();
    for contents in runs {
        for note in Outcomes::of(contents).notes().into_iter().flatten() {
            if let Pairing::Pair { reference, candidate } = pairing(note) {
                let of_language = pairs.entry(note.language).or_default();
                of_language.insert((reference.to_owned(), candidate.to_owned()));
            }
        }
    }
    pairs
}

/// Scores every pair by the models in `folder`, each in a folder named after its card. A model that is not there scores nothing; the
/// second value tells which.
///
/// # Errors
/// A folder without any of the models that the pairs need; weights that are damaged.
pub fn score_pairs(
    folder: &Path,
    pairs: &Pairs,
) -> Result<(ScoresByPair, Vec<&'static str>), EncoderError> {
    let mut scores = ScoresByPair::new();
    let mut missing = Vec::new();
    let bleurt = folder.join(BLEURT);
    let bleurt = match bleurt.is_dir() {
        true => Some(Bleurt::load(&bleurt)?),
        false => {
            missing.push(BLEURT);
            None
        }
    };
    for (language, pairs) in pairs {
        let pairs: Vec<(String, String)> = pairs.iter().cloned().collect();
        let model = bertscore_model(*language);
        let weights = folder.join(model.card);
        let bertscore = match weights.is_dir() {
            true => Some(BertScore::load(&weights, &model)?.score(&pairs)?),
            false => {
                missing.push(model.card);
                None
            }
        };
        let bleurt = bleurt.as_ref().map(|bleurt| bleurt.score(&pairs));
        let bleurt = bleurt.transpose()?;
        for (number, pair) in pairs.into_iter().enumerate() {
            let neural = NeuralScores {
                bertscore: bertscore.as_ref().map(|scores| scores[number].f),
                bleurt: bleurt.as_ref().map(|scores| scores[number]),
            };
            scores.insert(pair, neural);
        }
    }
    if !pairs.is_empty() && missing.len() > pairs.len() {
        // Nothing at all is there: the first model's own error says what was looked for.
        Bleurt::load(&folder.join(BLEURT))?;
    }
    Ok((scores, missing))
}
