//! LangChain's `RecursiveCharacterTextSplitter` with its default separators, chunk for chunk: sizes are Unicode characters.

use serde::{Deserialize, Serialize};

use crate::text::strip;

/// From the coarsest to the finest; the last one cuts between characters.
const SEPARATORS: [&str; 4] = ["\n\n", "\n", " ", ""];

/// How long chunks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecursiveSplitter {
    /// Characters of a chunk at most.
    pub size: usize,
    /// Characters that a chunk repeats of the one before it at most.
    pub overlap: usize,
}

/// A part of the text: pieces follow each other without a gap, so a chunk is a part of the text too.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    /// Where it starts in the whole text, in bytes.
    start: usize,
    characters: usize,
}

impl RecursiveSplitter {
    /// The chunks of a text, in order; none of a text of white space alone.
    pub fn split<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut chunks = Vec::new();
        let whole = Piece { text, start: 0, characters: 0 };
        self.split_piece(text, whole, &SEPARATORS, &mut chunks);
        chunks
    }

    fn split_piece<'a>(
        &self,
        whole: &'a str,
        piece: Piece<'a>,
        separators: &[&str],
        chunks: &mut Vec<&'a str>,
    ) {
        // The empty separator occurs in every text and stands last.
        let first = separators.iter().position(|separator| piece.text.contains(separator));
        let at = first.unwrap_or(separators.len() - 1);
        let finer = &separators[at + 1..];
        let mut waiting = Vec::new();
        for piece in cut(piece, separators[at]) {
            if piece.characters < self.size {
                waiting.push(piece);
                continue;
            }
            self.merge(whole, &waiting, chunks);
            waiting.clear();
            match finer.is_empty() {
                true => chunks.push(piece.text),
                false => self.split_piece(whole, piece, finer, chunks),
            }
        }
        self.merge(whole, &waiting, chunks);
    }

    /// Gathers pieces that follow each other into chunks.
    fn merge<'a>(&self, whole: &'a str, pieces: &[Piece<'_>], chunks: &mut Vec<&'a str>) {
        let (mut first, mut total) = (0, 0);
        let mut emit = |pieces: &[Piece<'_>]| {
            if let (Some(first), Some(last)) = (pieces.first(), pieces.last()) {
                let chunk = strip(&whole[first.start..last.start + last.text.len()]);
                if !chunk.is_empty() {
                    chunks.push(chunk);
                }
            }
        };
        for (index, piece) in pieces.iter().enumerate() {
            let is_over = |total: usize| total + piece.characters > self.size;
            if is_over(total) && first < index {
                emit(&pieces[first..index]);
                while total > self.overlap || (is_over(total) && total > 0) {
                    total -= pieces[first].characters;
                    first += 1;
                }
            }
            total += piece.characters;
        }
        emit(&pieces[first..]);
    }
}

/// The parts of a piece: each begins with the separator but for the first, and none is empty.
fn cut<'a>(piece: Piece<'a>, separator: &str) -> Vec<Piece<'a>> {
    let text = piece.text;
    let mut starts: Vec<usize> = match separator {
        "" => text.char_indices().map(|(at, _)| at).collect(),
        _ => text.match_indices(separator).map(|(at, _)| at).collect(),
    };
    starts.insert(0, 0);
    starts.push(text.len());
    let parts = starts.windows(2).filter(|ends| ends[0] < ends[1]);
    let part = |ends: &[usize]| {
        let text = &text[ends[0]..ends[1]];
        Piece { text, start: piece.start + ends[0], characters: text.chars().count() }
    };
    parts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        size: usize,
        overlap: usize,
        text: String,
        chunks: Vec<String>,
    }

    #[test]
    fn chunks_are_those_of_langchain() {
        let text = include_str!("../../../tests/goldens/corpus/split.json");
        let cases: Vec<Case> = serde_json::from_str(text).unwrap();
        assert_eq!(cases.len(), 500);
        for (index, Case { size, overlap, text, chunks }) in cases.iter().enumerate() {
            let splitter = RecursiveSplitter { size: *size, overlap: *overlap };
            assert_eq!(splitter.split(text), *chunks, "case {index}, {size}/{overlap}");
        }
    }

    #[test]
    fn a_text_of_white_space_has_no_chunk() {
        let splitter = RecursiveSplitter { size: 10, overlap: 3 };
        assert!(splitter.split(" \n\n \u{a0}\t").is_empty());
        assert!(splitter.split("").is_empty());
    }
}
