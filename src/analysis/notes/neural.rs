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

/// What the published code takes for a language; bert-score itself takes [`BertScoreModel::MULTILINGUAL`] for Arabic.
pub fn bertscore_model(language: Language) -> BertScoreModel {
    match language {
        Language::English => BertScoreModel::ENGLISH,
        Language::Arabic => BertScoreModel::ARABIC,
        Language::Chinese => BertScoreModel::CHINESE,
    }
}

/// A model's scores of pairs; `None` where its weights are not there.
fn bertscores(
    folder: &Path,
    model: &BertScoreModel,
    pairs: &[(String, String)],
    missing: &mut Vec<&'static str>,
) -> Result<Option<Vec<f64>>, EncoderError> {
    let weights = folder.join(model.card);
    if !weights.is_dir() {
        if !missing.contains(&model.card) {
            missing.push(model.card);
        }
        return Ok(None);
    }
    let scores = BertScore::load(&weights, model)?.score(pairs)?;
    Ok(Some(scores.iter().map(|score| score.f).collect()))
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
    let mut has_any = bleurt.is_some();
    for (language, pairs) in pairs {
        let pairs: Vec<(String, String)> = pairs.iter().cloned().collect();
        let bertscore = bertscores(folder, &bertscore_model(*language), &pairs, &mut missing)?;
        let multilingual = match language {
            Language::Arabic => {
                bertscores(folder, &BertScoreModel::MULTILINGUAL, &pairs, &mut missing)?
            }
            Language::English | Language::Chinese => None,
        };
        has_any |= bertscore.is_some() || multilingual.is_some();
        let bleurt = bleurt.as_ref().map(|bleurt| bleurt.score(&pairs));
        let bleurt = bleurt.transpose()?;
        for (number, pair) in pairs.into_iter().enumerate() {
            let neural = NeuralScores {
                bertscore: bertscore.as_ref().map(|scores| scores[number]),
                bertscore_multilingual: multilingual.as_ref().map(|scores| scores[number]),
                bleurt: bleurt.as_ref().map(|scores| scores[number]),
            };
            scores.insert(pair, neural);
        }
    }
    if !pairs.is_empty() && !has_any {
        // Nothing at all is there: the first model's own error says what was looked for.
        Bleurt::load(&folder.join(BLEURT))?;
    }
    Ok((scores, missing))
}
