//! Stand-ins for the characters that control tokens begin and end with, while a chat template works on texts that hold them.

use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Noncharacters of Unicode, and what is for private use.
const CANDIDATES: [RangeInclusive<char>; 3] =
    ['\u{fdd0}'..='\u{fdef}', '\u{e000}'..='\u{f8ff}', '\u{f0000}'..='\u{ffffd}'];

/// Characters, and for each another that occurs in none of the texts at hand.
#[derive(Debug)]
pub struct Mask {
    pairs: Vec<(char, char)>,
    /// One that occurs nowhere, and stands for nothing.
    pub spare: char,
}

impl Mask {
    /// Stand-ins for `characters`, and one to spare, of `CANDIDATES` in their order. `None` where `texts` hold too many of them.
    pub fn new<'a>(characters: &[char], texts: impl Iterator<Item = &'a str>) -> Option<Mask> {
        let is_candidate = |c: &char| CANDIDATES.iter().any(|range| range.contains(c));
        let used: HashSet<char> = texts
            .flat_map(str::chars)
            .chain(characters.iter().copied())
            .filter(is_candidate)
            .collect();
        let mut free =
            CANDIDATES.into_iter().flatten().filter(|candidate| !used.contains(candidate));
        let spare = free.next()?;
        let pairs: Vec<(char, char)> = characters.iter().copied().zip(free).collect();
        (pairs.len() == characters.len()).then_some(Mask { pairs, spare })
    }

    /// `text` with the stand-ins.
    pub fn cover(&self, text: &str) -> String {
        let stand_in =
            |c| self.pairs.iter().find(|(shown, _)| *shown == c).map_or(c, |pair| pair.1);
        text.chars().map(stand_in).collect()
    }

    /// `text` with what the stand-ins stand for.
    pub fn uncover(&self, text: &str) -> String {
        let shown = |c| self.pairs.iter().find(|(_, hidden)| *hidden == c).map_or(c, |pair| pair.0);
        text.chars().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_whatever_characters_it_holds() {
        let text = "a <b> [c] \u{fdd0}\u{e000}\u{fdd1}";
        let mask = Mask::new(&['<', '>', '['], [text, "\u{fdd2}"].into_iter()).unwrap();
        let covered = mask.cover(text);
        assert!(!covered.contains(['<', '>', '[']) && covered.contains(']'));
        assert_eq!(covered.chars().count(), text.chars().count());
        assert_eq!(mask.uncover(&covered), text);
        // What the template adds is its own.
        assert_eq!(mask.uncover(&format!("<s>{covered}")), format!("<s>{text}"));
        let everything: String = ('\u{e000}'..='\u{f8ff}')
            .chain('\u{fdd0}'..='\u{fdef}')
            .chain('\u{f0000}'..='\u{ffffd}')
            .collect();
        assert!(Mask::new(&['<'], [everything.as_str()].into_iter()).is_none());
    }
}
