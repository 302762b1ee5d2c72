//! Control tokens: which of a vocabulary's added tokens they are, and where they are written in a text.

use aho_corasick::{AhoCorasick, MatchKind};
use tokenizers::{AddedToken, Tokenizer as Inner};

/// HTML that vocabularies hold whole, as Gemma's does: its tags are text, whatever their brackets.
const MARKUP: &str = "a b bbox blockquote body caption code div em footer h1 h2 h3 h4 h5 h6 html i iframe img li s span strong sub \
                      sup table tbody td tfoot th thead tr u ul";

#[derive(Debug)]
pub(super) struct Controls {
    automaton: AhoCorasick,
    /// In the order of the automaton's patterns.
    tokens: Vec<Control>,
    /// The characters that their written forms begin or end with, each once.
    pub edges: Vec<char>,
}

#[derive(Clone, Copy, Debug)]
struct Control {
    id: u32,
    is_special: bool,
    /// Whether it is one only where no word goes on before or behind it.
    is_single_word: bool,
    takes_space_before: bool,
    takes_space_behind: bool,
}

/// Where a control token is written: a range of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenControl {
    pub id: u32,
    pub is_special: bool,
    pub start: usize,
    pub end: usize,
}

impl Controls {
    /// Finds them among the added tokens of `inner`, which from then on encodes them as the text that they are written in.
    pub fn take_from(inner: &mut Inner) -> Result<Controls, String> {
        let mut added: Vec<(u32, AddedToken)> =
            inner.get_added_tokens_decoder().into_iter().collect();
        added.retain(|(_, token)| is_control(token));
        added.sort_by_key(|(id, _)| *id);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(added.iter().map(|(_, token)| &token.content))
            .map_err(|error| error.to_string())?;
        let ends = |(_, token): &(u32, AddedToken)| {
            [token.content.chars().next(), token.content.chars().next_back()]
        };
        let mut edges: Vec<char> = added.iter().flat_map(ends).flatten().collect();
        edges.sort_unstable();
        edges.dedup();
        let control = |(id, token): &(u32, AddedToken)| Control {
            id: *id,
            is_special: token.special,
            is_single_word: token.single_word,
            takes_space_before: token.lstrip,
            takes_space_behind: token.rstrip,
        };
        let tokens = added.iter().map(control).collect();
        let unflagged = added.into_iter().filter(|(_, token)| !token.special);
        let flagged = unflagged.map(|(_, token)| AddedToken { special: true, ..token });
        inner.add_special_tokens(flagged).map_err(|error| error.to_string())?;
        inner.set_encode_special_tokens(true);
        Ok(Controls { automaton, tokens, edges })
    }

    pub fn has(&self, id: u32) -> bool {
        self.tokens.binary_search_by_key(&id, |token| token.id).is_ok()
    }

    /// Every one in `text`, from left to right; where several begin at one place, the longest.
    pub fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = WrittenControl> + 'a {
        self.automaton.find_iter(text).filter_map(move |found| {
            let Control { id, is_special, is_single_word, takes_space_before, takes_space_behind } =
                self.tokens[found.pattern().as_usize()];
            let (before, behind) = (&text[..found.start()], &text[found.end()..]);
            let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
            if is_single_word && (before.ends_with(is_of_word) || behind.starts_with(is_of_word)) {
                return None;
            }
            Some(WrittenControl {
                id,
                is_special,
                start: if takes_space_before { before.trim_end().len() } else { found.start() },
                end: if takes_space_behind {
                    text.len() - behind.trim_start().len()
                } else {
                    found.end()
                },
            })
        })
    }
}

/// Whether a tokenizer calls the token special, or writes it in brackets and it is no HTML: `<think>`, `[multimodal]`.
/// Runs of spaces and of line breaks and added words are text.
fn is_control(token: &AddedToken) -> bool {
    let inside = |open: char, close: char| token.content.strip_prefix(open)?.strip_suffix(close);
    let is_markup = |tag: &str| {
        let name = tag.strip_prefix('/').unwrap_or(tag);
        MARKUP.split(' ').any(|known| known == name)
    };
    let is_bracketed = inside('<', '>').is_some_and(|tag| !is_markup(tag));
    !token.content.is_empty() && (token.special || is_bracketed || inside('[', ']').is_some())
}
