//! Postings for words with BM25 scores (Robertson et al. 1994 in the Okapi form of rank-bm25): `bm25.bin`, mapped.
//!
//! Score of a chunk: Σ over the query's words of idf · f·(k1 + 1) / (f + k1·(1 − b + b·length/mean length)), where
//! idf = ln(N − n + ½) − ln(n + ½), and a quarter of the mean idf where that is below 0.

pub mod build;

use std::ops::Range;

const K1: f64 = 1.5;
const B: f64 = 0.75;
const EPSILON: f64 = 0.25;

const MAGIC: &[u8; 8] = b"WRBM25\0\x01";
const HEADER_BYTES: usize = 64;
const LENGTH_BYTES: usize = 4;
const TERM_BYTES: usize = 24;

/// The words of a text: runs of letters and digits, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let words: Vec<String> = lower
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

/// A chunk with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub score: f64,
    pub chunk: usize,
}

/// The parts of the file.
#[derive(Clone, Copy, Debug)]
pub struct Postings<'a> {
    /// Words of each chunk.
    lengths: &'a [[u8; LENGTH_BYTES]],
    /// In the order of their texts.
    terms: &'a [[u8; TERM_BYTES]],
    names: &'a [u8],
    lists: &'a [u8],
    mean_length: f64,
    mean_idf: f64,
}

/// What is known of a word.
#[derive(Clone, Copy, Debug)]
struct Term {
    name: usize,
    list: usize,
    name_length: usize,
    /// Chunks that have it.
    chunks: u32,
}

impl Term {
    fn to_bytes(self) -> [u8; TERM_BYTES] {
        let mut bytes = [0; TERM_BYTES];
        bytes[..8].copy_from_slice(&(self.name as u64).to_le_bytes());
        bytes[8..16].copy_from_slice(&(self.list as u64).to_le_bytes());
        bytes[16..20].copy_from_slice(&(self.name_length as u32).to_le_bytes());
        bytes[20..].copy_from_slice(&self.chunks.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; TERM_BYTES]) -> Term {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let long = |at: usize| (u64::from(word(at)) | u64::from(word(at + 4)) << 32) as usize;
        Term { name: long(0), list: long(8), name_length: word(16) as usize, chunks: word(20) }
    }
}

impl<'a> Postings<'a> {
    /// `None` where the file is no such file or is cut short.
    pub fn open(bytes: &'a [u8], chunks: usize) -> Option<Postings<'a>> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let long =
            |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| header[at + byte]));
        let (found, terms, names) =
            (long(8), usize::try_from(long(16)).ok()?, usize::try_from(long(24)).ok()?);
        if &header[..8] != MAGIC || found != chunks as u64 {
            return None;
        }
        let rest = &bytes[HEADER_BYTES..];
        let (lengths, rest) = rest.split_at_checked(chunks.checked_mul(LENGTH_BYTES)?)?;
        let (terms, rest) = rest.split_at_checked(terms.checked_mul(TERM_BYTES)?)?;
        let (names, lists) = rest.split_at_checked(names)?;
        Some(Postings {
            lengths: lengths.as_chunks().0,
            terms: terms.as_chunks().0,
            names,
            lists,
            mean_length: long(32) as f64 / chunks.max(1) as f64,
            mean_idf: f64::from_bits(long(40)),
        })
    }

    /// The `count` best chunks within `ranges`, best first, ties to the lower chunk; chunks without any of the words are
    /// not among them.
    pub fn search(&self, query: &str, ranges: &[Range<usize>], count: usize) -> Vec<Scored> {
        let mut scores = vec![0.0; self.lengths.len()];
        for word in words(query) {
            let Some(term) = self.find(&word) else { continue };
            let idf = self.idf(term.chunks);
            for (chunk, frequency) in self.list(&term) {
                if let Some(score) = scores.get_mut(chunk) {
                    *score += idf * self.weight(chunk, frequency);
                }
            }
        }
        let wanted = ranges.iter().flat_map(Clone::clone);
        let mut found: Vec<Scored> = wanted
            .filter_map(|chunk| Some(Scored { score: *scores.get(chunk)?, chunk }))
            .filter(|scored| scored.score != 0.0)
            .collect();
        found.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then(one.chunk.cmp(&other.chunk))
        });
        found.truncate(count);
        found
    }

    fn weight(&self, chunk: usize, frequency: u32) -> f64 {
        let length = self.lengths.get(chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let frequency = f64::from(frequency);
        let share = f64::from(length) / self.mean_length;
        frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * share))
    }

    fn idf(&self, chunks: u32) -> f64 {
        let idf = idf(self.lengths.len(), chunks);
        if idf < 0.0 { EPSILON * self.mean_idf } else { idf }
    }

    fn find(&self, word: &str) -> Option<Term> {
        let name = |bytes: &[u8; TERM_BYTES]| {
            let term = Term::from_bytes(bytes);
            self.names.get(term.name..term.name.saturating_add(term.name_length))
        };
        let at =
            self.terms.binary_search_by(|term| name(term).unwrap_or_default().cmp(word.as_bytes()));
        Some(Term::from_bytes(&self.terms[at.ok()?]))
    }

    /// The chunks that have a word, and how often.
    fn list(&self, term: &Term) -> impl Iterator<Item = (usize, u32)> {
        let mut rest = self.lists.get(term.list..).unwrap_or_default();
        let (mut chunk, mut left) = (0_u64, term.chunks);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            chunk = chunk.checked_add(read_number(&mut rest)?)?;
            let frequency = u32::try_from(read_number(&mut rest)?).ok()?;
            Some((chunk as usize, frequency))
        })
    }
}

fn idf(all: usize, chunks: u32) -> f64 {
    let (all, chunks) = (all as f64, f64::from(chunks));
    libm::log((all - chunks + 0.5).max(f64::MIN_POSITIVE)) - libm::log(chunks + 0.5)
}

/// Seven bits a byte, the lowest first; the last byte is below 128.
fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 128 {
        to.push(number as u8 | 128);
        number >>= 7;
    }
    to.push(number as u8);
}

fn read_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(first & 127) << shift;
        if first & 128 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_runs_of_letters_and_digits() {
        let found: Vec<String> = words("Amoxicillin-clavulanate 38.5 °C, naïve; 肺炎").collect();
        assert_eq!(found, ["amoxicillin", "clavulanate", "38", "5", "c", "naïve", "肺炎"]);
    }

    #[test]
    fn numbers_read_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX)] {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes);
            assert_eq!(read_number(&mut &*bytes), Some(number));
        }
        assert_eq!(read_number(&mut [128, 128].as_slice()), None);
        assert_eq!(read_number(&mut [255; 20].as_slice()), None);
    }

    #[test]
    fn scores_are_those_of_rank_bm25() {
        let golden = include_str!("../../../tests/goldens/corpus/bm25.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let texts: Vec<String> = serde_json::from_value(golden["texts"].clone()).unwrap();
        let mut runs = build::Runs::new(tempfile::tempdir().unwrap().keep(), 7);
        for (chunk, text) in texts.iter().enumerate() {
            runs.add(chunk as u32, words(text)).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bm25.bin");
        runs.merge(&path).unwrap();
        let bytes = fs_err::read(&path).unwrap();
        let postings = Postings::open(&bytes, texts.len()).unwrap();
        let whole = 0..texts.len();
        let all = std::slice::from_ref(&whole);
        for query in golden["queries"].as_array().unwrap() {
            let expected: Vec<f64> = serde_json::from_value(query["scores"].clone()).unwrap();
            let found = postings.search(query["query"].as_str().unwrap(), all, texts.len());
            let mut scores = vec![0.0; texts.len()];
            found.iter().for_each(|scored| scores[scored.chunk] = scored.score);
            for (one, other) in scores.iter().zip(&expected) {
                assert!((one - other).abs() < 1e-9, "{one} {other}");
            }
            assert!(found.is_sorted_by(|one, next| one.score >= next.score));
        }
        assert!(postings.search("no such", all, 5).is_empty());
        assert!(Postings::open(&bytes, texts.len() + 1).is_none());
        assert!(Postings::open(&bytes[..100], texts.len()).is_none());
    }
}
