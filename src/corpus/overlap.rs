//! Whether a corpus gives away what it is to be asked about: notes that share half of their 8-grams with one document.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::{Corpus, CorpusError};

/// Words of a gram.
const WORDS: usize = 8;

/// A note that stands in a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overlap {
    pub note: String,
    /// `LABEL/DOCUMENT`.
    pub document: String,
    /// Of the note's 8-grams, those in the document.
    pub share: f64,
}

/// For each note of which at least half stands in one document: the document with most of it. Notes are id and text.
pub fn overlaps(corpus: &Corpus, notes: &[(String, String)]) -> Result<Vec<Overlap>, CorpusError> {
    let mut owners: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut counts = Vec::new();
    for (index, (_, text)) in notes.iter().enumerate() {
        let grams: HashSet<u64> = grams(text).collect();
        counts.push(grams.len());
        grams.into_iter().for_each(|gram| owners.entry(gram).or_default().push(index));
    }
    let mut best: Vec<Option<Overlap>> = vec![None; notes.len()];
    let mut close = |name: &str, shared: &mut HashSet<u64>| {
        let mut found: HashMap<usize, usize> = HashMap::new();
        for gram in shared.drain() {
            owners[&gram].iter().for_each(|note| *found.entry(*note).or_default() += 1);
        }
        for (note, count) in found {
            let share = count as f64 / counts[note] as f64;
            if share >= 0.5 && best[note].as_ref().is_none_or(|best| best.share < share) {
                let document = name.to_owned();
                best[note] = Some(Overlap { note: notes[note].0.clone(), document, share });
            }
        }
    };
    let (mut current, mut shared) = (String::new(), HashSet::new());
    for number in 0..corpus.len() {
        let chunk = corpus.chunk(number)?;
        let document = corpus.document(chunk.record.document)?;
        let name = format!("{}/{}", corpus.source(&chunk.record).description.label, document.id);
        if name != current {
            close(&current, &mut shared);
            current = name;
        }
        for text in [document.title, chunk.text] {
            shared.extend(grams(text).filter(|gram| owners.contains_key(gram)));
        }
    }
    close(&current, &mut shared);
    Ok(best.into_iter().flatten().collect())
}

/// Of each run of eight words, letters and digits in lower case, its hash.
fn grams(text: &str) -> impl Iterator<Item = u64> {
    let words: Vec<String> = super::postings::words(text).collect();
    let grams: Vec<u64> = words
        .windows(WORDS)
        .map(|gram| {
            let mut hasher = DefaultHasher::new();
            gram.hash(&mut hasher);
            hasher.finish()
        })
        .collect();
    grams.into_iter()
}
