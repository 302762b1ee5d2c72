//! One sentence of a note beside the most similar right and wrong sentence of the exemplars, as IKIM shows them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::cluster::{clusters, first_greatest, representative};
use super::prompt::Shot;
use super::terms::TfIdf;
use super::{Exemplar, Exemplars, Ranking};
use crate::data::Note;
use crate::panel::PanelError;

/// How sentences are compared.
#[derive(Clone, Copy)]
pub struct By {
    /// By vectors, or else by TF-IDF.
    pub ranking: Ranking,
    /// Whether only representatives of FINCH clusters are shown.
    pub clusters: bool,
}

/// The sentences of the exemplars that may be shown.
pub struct Nearest {
    from_end: usize,
    right: Side,
    wrong: Side,
}

impl Nearest {
    pub fn new(exemplars: &Exemplars) -> Nearest {
        let from_end = usual_position(exemplars);
        let [right, wrong] = [false, true].map(|is_wrong| Side::new(exemplars, from_end, is_wrong));
        Nearest { from_end, right, wrong }
    }

    /// The sentence where most exemplars have their error.
    pub fn usual(&self, note: &Note) -> usize {
        position(note, self.from_end)
    }

    /// The right and the wrong exemplar, `most` of both, whose sentences are most like this one.
    ///
    /// # Errors
    /// A text that cannot be encoded.
    pub fn shots<'a>(
        &self,
        exemplars: &'a Exemplars,
        by: By,
        (note, sentence): (&Note, &str),
        most: usize,
    ) -> Result<Vec<Shot<'a>>, PanelError> {
        let shown = exemplars.pool.shown_beside(note);
        let mut shots = Vec::new();
        for side in [&self.right, &self.wrong].into_iter().take(most) {
            let nearest = side.nearest(exemplars, by, sentence, &shown)?;
            shots.extend(nearest.map(|(place, own)| Shot {
                exemplar: &exemplars.pool.exemplars[*place],
                more: vec![("sentence", own.clone())],
            }));
        }
        Ok(shots)
    }
}

impl Exemplars {
    /// The sentence with the highest score by `--sentence-scorer`, the first of several.
    ///
    /// # Errors
    /// A text that cannot be encoded.
    pub fn suspect(&self, note: &Note) -> Result<usize, PanelError> {
        let texts: Vec<&str> = note.sentences.iter().map(String::as_str).collect();
        let vectors = self.vectors(&texts)?;
        let weights = self.scorer.as_deref().unwrap_or_default();
        // The constant, last, is the same for all.
        let score = |vector: &Vec<f32>| -> f64 {
            vector.iter().zip(weights).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        Ok(first_greatest(vectors.iter().map(score).enumerate()).unwrap_or(0))
    }
}

/// The most common position of the exemplars' errors, as the number of sentences after it; the smallest of several.
fn usual_position(exemplars: &Exemplars) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for exemplar in &exemplars.pool.exemplars {
        if let Some(error) = exemplar.error() {
            let after = exemplar.note.sentences.len().saturating_sub(1 + error.sentence_id);
            *counts.entry(after).or_default() += 1;
        }
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map_or(0, |(after, _)| after)
}

/// The candidate sentences of all exemplars with an error, or of all without one.
struct Side {
    /// Each with the place of its exemplar in the pool.
    sentences: Vec<(usize, String)>,
    tfidf: TfIdf,
    /// The representatives of the clusters, by their places in `sentences`; computed at first use.
    representatives: OnceLock<Vec<usize>>,
}

impl Side {
    fn new(exemplars: &Exemplars, from_end: usize, is_wrong: bool) -> Side {
        let exemplars = exemplars.pool.exemplars.iter().enumerate();
        let of_side = exemplars.filter(|(_, one)| one.error().is_some() == is_wrong);
        let candidate = |(place, one): (usize, &Exemplar)| {
            let id = one.error().map_or_else(|| position(&one.note, from_end), |e| e.sentence_id);
            (place, one.note.sentences.get(id).cloned().unwrap_or_default())
        };
        let sentences: Vec<(usize, String)> = of_side.map(candidate).collect();
        let tfidf = TfIdf::new(sentences.iter().map(|(_, sentence)| sentence.as_str()));
        Side { sentences, tfidf, representatives: OnceLock::new() }
    }

    /// The candidate most similar to a sentence, with its exemplar's place; of those whose exemplars are among `shown`, in ascending order.
    fn nearest(
        &self,
        exemplars: &Exemplars,
        by: By,
        sentence: &str,
        shown: &[usize],
    ) -> Result<Option<&(usize, String)>, PanelError> {
        let texts = self.sentences.iter().map(|(_, sentence)| sentence.as_str());
        let scores = match by.ranking {
            Ranking::Embedding => exemplars.likeness(sentence, texts.clone())?,
            _ => self.tfidf.scores(sentence),
        };
        if by.clusters && self.representatives.get().is_none() {
            let vectors = exemplars.vectors(&texts.collect::<Vec<_>>())?;
            let groups = clusters(&vectors);
            let found = groups.iter().filter_map(|group| representative(&vectors, group));
            // Where another thread was faster, it found the same.
            let _ = self.representatives.set(found.collect());
        }
        // Set only where the settings ask for clusters.
        let mut allowed = match self.representatives.get() {
            Some(representatives) => representatives.clone(),
            None => (0..self.sentences.len()).collect(),
        };
        allowed.retain(|one| shown.binary_search(&self.sentences[*one].0).is_ok());
        let best = first_greatest(allowed.into_iter().map(|one| (one, scores[one])));
        Ok(best.map(|best| &self.sentences[best]))
    }
}

/// The index of the sentence with so many after it; of a shorter note the first.
fn position(note: &Note, from_end: usize) -> usize {
    note.sentences.len().saturating_sub(1 + from_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::exemplars::Pool;
    use crate::systems::exemplars::vectors::Vectors;
    use crate::systems::scripted::{exemplars, note};

    #[test]
    fn a_scorer_weighs_vectors_and_clusters_have_one_representative() {
        let notes = exemplars();
        let notes = notes.pool.exemplars.iter().map(|one| one.note.clone());
        let pool = Pool::new(notes, &Default::default());
        let encode = |texts: &[&str]| {
            let vector = |text: &&str| vec![f32::from(text.contains("Beta")), 1.0];
            Ok(texts.iter().map(vector).collect())
        };
        let exemplars = Exemplars {
            pool,
            vectors: Some(Vectors::new(Box::new(encode))),
            scorer: Some(vec![1.0, 0.0, 3.0]),
            ..Exemplars::default()
        };
        let nearest = Nearest::new(&exemplars);
        assert_eq!((nearest.from_end, exemplars.suspect(&note()).unwrap()), (0, 1));
        // One cluster a side, and so one sentence each.
        let by = By { ranking: Ranking::Embedding, clusters: true };
        let note = note();
        let shots = nearest.shots(&exemplars, by, (&note, &note.sentences[1]), 2).unwrap();
        assert_eq!((shots.len(), nearest.wrong.representatives.get().unwrap().len()), (2, 1));
    }
}
