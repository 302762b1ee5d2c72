//! A completion's text: where its tokens end in it, where a stop string cuts it, and what of it was given so far.

use std::ops::Range;

#[derive(Debug, Default)]
pub struct Text {
    bytes: Vec<u8>,
    /// Of each token, where its bytes end.
    ends: Vec<usize>,
    /// What was given: bytes, and tokens.
    given: usize,
    given_tokens: usize,
}

/// A piece of text, and the tokens that come with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    pub tokens: Range<usize>,
}

impl Text {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Cuts the text where the first of `stops` begins that the last token completed, from the byte `start` on. Says whether
    /// there was one.
    pub fn cut(&mut self, stops: &[String], start: usize) -> bool {
        let before = self.ends.iter().rev().nth(1).copied().unwrap_or(0);
        let starts = stops.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| {
            let from = (before + 1).saturating_sub(stop.len()).max(start);
            let mut windows = self.bytes.get(from..)?.windows(stop.len());
            windows.position(|window| window == stop.as_bytes()).map(|at| from + at)
        });
        let Some(start) = starts.min() else {
            return false;
        };
        self.bytes.truncate(start);
        true
    }

    /// The next piece of what the first `settled` tokens say, whole characters that can no longer become part of one of
    /// `stops`; `None` where there is none yet.
    pub fn take(&mut self, stops: &[String], settled: usize) -> Option<Part> {
        let held = stops.iter().map(|stop| stop.len().saturating_sub(1)).max().unwrap_or(0);
        let said = settled.checked_sub(1).map_or(0, |last| self.ends[last]);
        let ready = self.bytes.len().saturating_sub(held).min(said).max(self.given);
        let end = self.given + whole_characters(&self.bytes[self.given..ready]);
        let left = &self.ends[self.given_tokens..settled.max(self.given_tokens)];
        let tokens = self.given_tokens + left.partition_point(|token_end| *token_end <= end);
        (end > self.given).then(|| self.give(end, tokens))
    }

    /// All that was not given yet; `None` where that is nothing.
    pub fn take_rest(&mut self) -> Option<Part> {
        let (end, tokens) = (self.bytes.len(), self.ends.len());
        (end > self.given || tokens > self.given_tokens).then(|| self.give(end, tokens))
    }

    fn give(&mut self, end: usize, tokens: usize) -> Part {
        let text = String::from_utf8_lossy(&self.bytes[self.given..end]).into_owned();
        let part = Part { text, tokens: self.given_tokens..tokens };
        (self.given, self.given_tokens) = (end, tokens);
        part
    }

    pub fn whole(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Length of the longest part of `bytes` that does not end inside a character. Bytes that no continuation could
/// mend are whole as they are.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => bytes.len() - tail.len(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        let text = "aé€😀".as_bytes();
        assert_eq!(whole_characters(text), text.len());
        assert_eq!(whole_characters(&text[..text.len() - 1]), 6);
        assert_eq!(whole_characters(&text[..2]), 1);
        assert_eq!(whole_characters(b"a\xff"), 2);
        // A broken byte before it does not let a cut character through.
        assert_eq!(whole_characters(b"\xffa\xe2\x82"), 2);
    }

    fn part(text: &str, tokens: Range<usize>) -> Option<Part> {
        Some(Part { text: text.to_owned(), tokens })
    }

    #[test]
    fn a_token_comes_with_the_piece_that_its_last_byte_is_in() {
        let mut text = Text::default();
        text.push(b"a\xe2\x82");
        assert_eq!(text.take(&[], 1), part("a", 0..0));
        assert_eq!(text.take(&[], 1), None);
        text.push(b"\xac");
        // A token without text comes with the text before it.
        text.push(b"");
        assert_eq!(text.take(&[], 3), part("€", 0..3));
        text.push(b"b");
        text.push(b"");
        // What is not settled waits.
        assert_eq!(text.take(&[], 3), None);
        assert_eq!(text.take(&[], 4), part("b", 3..4));
        assert_eq!(text.take(&[], 5), None);
        assert_eq!(text.take_rest(), part("", 4..5));
        assert_eq!(text.take_rest(), None);
        assert_eq!(text.whole(), "a€b");
    }

    #[test]
    fn a_stop_is_held_back_until_it_is_none_and_cuts_where_it_begins() {
        let stops = ["stop".to_owned(), String::new(), "no such".to_owned()];
        let mut text = Text::default();
        for word in ["one ", "st", "o"] {
            text.push(word.as_bytes());
            assert!(!text.cut(&stops, 0));
        }
        assert_eq!(text.take(&stops, 3), part("o", 0..0));
        text.push(b"p stop");
        assert!(text.cut(&stops, 0));
        assert_eq!(text.take_rest(), part("ne ", 0..4));
        assert_eq!(text.whole(), "one ");
    }
}
