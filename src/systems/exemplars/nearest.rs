//! One sentence of a note beside the most similar right and wrong sentence of the exemplars, as IKIM shows them.

use std::collections::BTreeMap;

use super::terms::TfIdf;
use super::{Exemplar, Exemplars, Ranking, Shot};
use crate::data::Note;
use crate::panel::PanelError;

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

    /// The right and the wrong exemplar, `most` of both, whose sentences are most like this one: by vectors, or else by TF-IDF.
    pub fn shots<'a>(
        &self,
        exemplars: &'a Exemplars,
        ranking: Ranking,
        (note, sentence): (&Note, &str),
        most: usize,
    ) -> Result<Vec<Shot<'a>>, PanelError> {
        let shown = exemplars.shown_beside(note);
        let mut shots = Vec::new();
        for side in [&self.right, &self.wrong].into_iter().take(most) {
            let nearest = side.nearest(exemplars, ranking, sentence, &shown)?;
            shots.extend(nearest.map(|(place, own)| Shot {
                exemplar: &exemplars.notes[*place],
                sentence: own.clone(),
            }));
        }
        Ok(shots)
    }
}

/// The most common position of the exemplars' errors, as the number of sentences after it; the smallest of several.
fn usual_position(exemplars: &Exemplars) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for exemplar in &exemplars.notes {
        if let Some(id) = exemplar.error().and_then(|error| error.sentence_id) {
            let after = exemplar.note.sentences.len().saturating_sub(1 + id);
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
}

impl Side {
    fn new(exemplars: &Exemplars, from_end: usize, is_wrong: bool) -> Side {
        let exemplars = exemplars.notes.iter().enumerate();
        let of_side = exemplars.filter(|(_, one)| one.error().is_some() == is_wrong);
        let candidate = |(place, one): (usize, &Exemplar)| {
            let own = one.error().and_then(|error| error.sentence_id);
            let id = own.unwrap_or_else(|| position(&one.note, from_end));
            (place, one.note.sentences.get(id).cloned().unwrap_or_default())
        };
        let sentences: Vec<(usize, String)> = of_side.map(candidate).collect();
        let tfidf = TfIdf::new(sentences.iter().map(|(_, sentence)| sentence.as_str()));
        Side { sentences, tfidf }
    }

    /// The candidate most similar to a sentence, the first of several, with its exemplar's place; of those whose exemplars are among `shown`,
    /// in ascending order.
    fn nearest(
        &self,
        exemplars: &Exemplars,
        ranking: Ranking,
        sentence: &str,
        shown: &[usize],
    ) -> Result<Option<&(usize, String)>, PanelError> {
        let texts = self.sentences.iter().map(|(_, sentence)| sentence.as_str());
        let scores = match ranking {
            Ranking::Embedding => exemplars.likeness(sentence, texts)?,
            _ => self.tfidf.scores(sentence),
        };
        let scored = self.sentences.iter().zip(scores);
        let allowed = scored.filter(|((place, _), _)| shown.binary_search(place).is_ok());
        let best = allowed.reduce(|best, one| if one.1 > best.1 { one } else { best });
        Ok(best.map(|(sentence, _)| sentence))
    }
}

/// The index of the sentence with so many after it; of a shorter note the first.
fn position(note: &Note, from_end: usize) -> usize {
    note.sentences.len().saturating_sub(1 + from_end)
}
