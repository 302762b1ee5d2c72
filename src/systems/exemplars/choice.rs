//! Selects the exemplars of a note's prompt: drawn at random, or those most similar to the note.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Exemplars;
use super::terms::TfIdf;
use crate::data::Note;
use crate::digest::sha256;
use crate::random::sample;

/// How exemplars are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranking {
    /// At random, differently for every note but the same in every run.
    Random,
    Tfidf,
    /// At random, the same for every note.
    Fixed,
    /// TF-IDF cosine of an exemplar's wrong sentence and the note's sentence most similar to it.
    Sentences,
}

/// How many exemplars, and which of the ranked.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    pub ranking: Ranking,
    pub shots: usize,
    pub kinds: Kinds,
    /// The number of best exemplars to draw from at random, in random order; `None`: the best are taken, best first.
    pub drawn_from: Option<usize>,
}

/// Whether the chosen exemplars have an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kinds {
    /// Half of them; of an odd number one more with an error.
    Balanced,
    Wrong,
    Any,
}

const FIXED_SEED: u64 = 42;
/// Hashed with a note for the seeds of its draws.
const DRAW_SEED: &str = "exemplars 42";

impl Exemplars {
    /// The places of the exemplars to show with a note; fewer than asked for where there are fewer.
    pub fn choose(&self, note: &Note, choice: &Selection) -> Vec<usize> {
        let ranked = self.ranked(note, choice.ranking);
        let is_wrong = |place: &usize| self.notes[*place].error().is_some();
        let (wrong, right): (Vec<usize>, Vec<usize>) = ranked.iter().partition(|one| is_wrong(one));
        let of_kind = |all: &[usize], count: usize, purpose: &str| -> Vec<usize> {
            let Some(near) = choice.drawn_from else {
                return all.iter().take(count).copied().collect();
            };
            let near = &ranked[..near.min(ranked.len())];
            let (mut pool, further): (Vec<usize>, Vec<usize>) =
                all.iter().partition(|place| near.contains(place));
            // Where too few of the kind are near, the next are added.
            pool.extend(further.into_iter().take(count.saturating_sub(pool.len())));
            let drawn = sample(pool.len(), count, draw_seed(note, purpose));
            drawn.into_iter().map(|one| pool[one]).collect()
        };
        let half = choice.shots / 2;
        let chosen: Vec<usize> = match choice.kinds {
            Kinds::Any => of_kind(&ranked, choice.shots, "any"),
            Kinds::Wrong => of_kind(&wrong, choice.shots, "wrong"),
            Kinds::Balanced => {
                let wrong = of_kind(&wrong, choice.shots - half, "wrong");
                [wrong, of_kind(&right, half, "right")].concat()
            }
        };
        if choice.drawn_from.is_some() {
            let order = sample(chosen.len(), chosen.len(), draw_seed(note, "order"));
            return order.into_iter().map(|one| chosen[one]).collect();
        }
        let chosen: BTreeSet<usize> = chosen.into_iter().collect();
        ranked.into_iter().filter(|place| chosen.contains(place)).collect()
    }

    /// All exemplars that may be shown with a note, best first, equal ones in the file's order.
    fn ranked(&self, note: &Note, ranking: Ranking) -> Vec<usize> {
        let mut places = self.shown_beside(note);
        let scores = match ranking {
            Ranking::Random => {
                let order = sample(places.len(), places.len(), draw_seed(note, "ranking"));
                return order.into_iter().map(|one| places[one]).collect();
            }
            Ranking::Fixed => {
                let all = self.notes.len();
                let order = sample(all, all, FIXED_SEED).into_iter();
                return order.filter(|place| places.binary_search(place).is_ok()).collect();
            }
            Ranking::Sentences => self.sentence_scores(note),
            Ranking::Tfidf => {
                let texts = self.notes.iter().map(|exemplar| exemplar.note.text.as_str());
                self.tfidf.get_or_init(|| TfIdf::new(texts)).scores(&note.text)
            }
        };
        places.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        places
    }
}

/// The seed of a note's draw for a purpose, the same in every run and every system.
fn draw_seed(note: &Note, purpose: &str) -> u64 {
    let digest = sha256(format!("{DRAW_SEED}\n{purpose}\n{}\n{}", note.id, note.text));
    u64::from_str_radix(&digest[..16], 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::{exemplars, note};

    fn choose(choice: &Selection) -> Vec<usize> {
        exemplars().choose(&note(), choice)
    }

    #[test]
    fn the_best_of_each_kind_come_best_first() {
        let best =
            |shots, kinds| Selection { ranking: Ranking::Tfidf, shots, kinds, drawn_from: None };
        // «Beta blockers» and «wheezing» stand in the note.
        assert_eq!(choose(&best(4, Kinds::Balanced)), [2, 1, 0, 3]);
        assert_eq!(choose(&best(2, Kinds::Balanced)), [2, 1]);
        assert_eq!(choose(&best(1, Kinds::Any)), [2]);
        assert_eq!(choose(&best(3, Kinds::Balanced)), [2, 1, 0]);
        assert_eq!(choose(&best(3, Kinds::Wrong)), [2, 0]);
        assert!(choose(&best(0, Kinds::Balanced)).is_empty());
    }

    #[test]
    fn draws_are_the_notes_own_and_take_the_next_where_too_few_are_near() {
        let drawn = |near| Selection {
            ranking: Ranking::Tfidf,
            shots: 4,
            kinds: Kinds::Balanced,
            drawn_from: Some(near),
        };
        let mut all = choose(&drawn(1));
        assert_eq!(all, choose(&drawn(1)));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
        let random = Selection {
            ranking: Ranking::Random,
            shots: 4,
            kinds: Kinds::Balanced,
            drawn_from: None,
        };
        let mut orders = (0..20).map(|id| {
            let note = Note { id: format!("ms-{id}"), ..note() };
            exemplars().choose(&note, &random)
        });
        let first = orders.next().unwrap();
        assert!(orders.any(|order| order != first));
    }
}
