//! BERTScore and BLEURT of the corrections in runs, by the weights that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::correction::{Pairing, pairing};
use super::quality::{Measure, ScoresByPair};
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

/// Pairs of reference and candidate, by language; each once.
pub type Pairs = BTreeMap<Language, BTreeSet<(String, String)>>;

/// Every pair of a graded note in these runs.
pub fn pairs<'a>(runs: impl IntoIterator<Item = &'a Contents>) -> Pairs {
    let mut pairs = Pairs::new();
    for contents in runs {
        for note in Outcomes::of(contents).notes().iter() {
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
/// Weights that are damaged.
pub fn score_pairs(
    folder: &Path,
    pairs: &Pairs,
) -> Result<(ScoresByPair, Vec<&'static str>), EncoderError> {
    let mut scores = ScoresByPair::new();
    let mut missing = Vec::new();
    let mut find = |card: &'static str| {
        let weights = folder.join(card);
        let is_there = weights.is_dir();
        if !is_there && !missing.contains(&card) {
            missing.push(card);
        }
        is_there.then_some(weights)
    };
    let bleurt = find(BLEURT).map(|weights| Bleurt::load(&weights)).transpose()?;
    for (language, pairs) in pairs {
        let pairs: Vec<(String, String)> = pairs.iter().cloned().collect();
        let mut found: Vec<(Measure, Vec<f64>)> = Vec::new();
        let own = (Measure::BertScoreMultilingual, BertScoreModel::MULTILINGUAL);
        let own = (*language == Language::Arabic).then_some(own);
        let published = (Measure::BertScore, bertscore_model(*language));
        for (measure, model) in [published].into_iter().chain(own) {
            if let Some(weights) = find(model.card) {
                found.push((measure, BertScore::load(&weights, &model)?.score(&pairs)?));
            }
        }
        if let Some(bleurt) = &bleurt {
            found.push((Measure::Bleurt, bleurt.score(&pairs)?));
        }
        for (number, pair) in pairs.into_iter().enumerate() {
            let of_pair = found.iter().map(|(measure, scores)| (*measure, scores[number]));
            scores.insert(pair, of_pair.collect());
        }
    }
    Ok((scores, missing))
}
