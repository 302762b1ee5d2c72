//! The shortest end of a completion under a grammar, which is forced where the tokens that are left allow no other.

use std::sync::Arc;

use llguidance::Matcher;
use llguidance::api::StopReason;

use crate::tokenizer::{Piece, Tokenizer};

/// What ends a list, a record, a tag or a value between texts; of those that a grammar allows, the first.
const BETWEEN: [&[u8]; 7] = [b"]", b"}", b"</", b"<", b",", b":", b"\""];

/// What may end a text, if the grammar then goes on with something else.
const IN_TEXT: [&[u8]; 6] = [b"\"", b"</", SLASH, OPEN, b"\n", b"."];

/// A closing tag of a vocabulary without `</`.
const OPEN: &[u8] = b"<";
const SLASH: &[u8] = b"/";

/// Tokens that an end may need beyond the shortest: digits of a number that has begun.
const MARGIN: usize = 6;

/// So many tokens before the shortest end no further item of a list is begun.
const APPROACH: usize = 32;

/// Choices on the way to an end that is looked for. One that takes more is not known, and nothing is forced: a mask of a stranger's grammar
/// may take 20 ms.
const CHOICES: usize = 80;

/// The tokens of one vocabulary that end something.
pub struct Closers {
    eos_ids: Vec<u32>,
    between: [Vec<u32>; BETWEEN.len()],
    in_text: [Vec<u32>; IN_TEXT.len()],
    /// A bit for each token that ends in a digit.
    digits: Arc<[u32]>,
    /// One for each token of white space, and for each that goes on with a list or opens more than one thing: `", "`, `[{`.
    others: Arc<[u32]>,
}

/// What ends something where a grammar stands.
struct Close {
    ids: Vec<u32>,
    ends_all: bool,
}

impl Closers {
    pub fn new(tokenizer: &Tokenizer, eos_ids: &[u32]) -> Closers {
        let pieces = tokenizer.pieces();
        let ids = |mark: &[u8]| {
            let is_mark = |piece: &Piece| matches!(piece, Piece::Text(bytes) if bytes == mark);
            (0..).zip(pieces.iter()).filter(|(_, piece)| is_mark(piece)).map(|(id, _)| id).collect()
        };
        let mask = |is: fn(&[u8]) -> bool| {
            let is = |piece: &Piece| matches!(piece, Piece::Text(bytes) if is(bytes));
            let ids = (0..).zip(pieces.iter()).filter(|(_, piece)| is(piece)).map(|(id, _)| id);
            only(&ids.collect::<Vec<_>>(), pieces.len().div_ceil(32))
        };
        Closers {
            eos_ids: eos_ids.to_vec(),
            between: BETWEEN.map(ids),
            in_text: IN_TEXT.map(ids),
            digits: mask(|bytes| bytes.last().is_some_and(u8::is_ascii_digit)),
            others: mask(|bytes| !bytes.is_empty() && (is_blank(bytes) || goes_on(bytes))),
        }
    }

    /// `allowed` without the tokens that put an end off, unless nothing else is left.
    fn direct(&self, allowed: &[u32]) -> Arc<[u32]> {
        let others = self.others.iter().chain(std::iter::repeat(&0));
        let direct: Arc<[u32]> =
            allowed.iter().zip(others).map(|(allowed, other)| allowed & !other).collect();
        if direct.iter().all(|word| *word == 0) { allowed.into() } else { direct }
    }

    /// What ends soonest what is open, of the tokens `allowed`; `None` where the grammar has none.
    fn close(&self, matcher: &Matcher, allowed: &[u32]) -> Option<Close> {
        let among = |ids: &[u32]| -> Vec<u32> {
            ids.iter().copied().filter(|id| has(allowed, *id)).collect()
        };
        let ids = among(&self.eos_ids);
        if !ids.is_empty() {
            return Some(Close { ids, ends_all: true });
        }
        let is_text = is_text(allowed);
        let ids = match is_text {
            false => self.between.iter().map(|ids| among(ids)).find(|ids| !ids.is_empty())?,
            true => {
                let marks = IN_TEXT.iter().zip(&self.in_text).map(|(mark, ids)| (mark, among(ids)));
                let ends = |(mark, ids): &(&&[u8], Vec<u32>)| {
                    ids.first().is_some_and(|id| self.leaves(matcher, mark, *id))
                };
                marks.into_iter().find(ends)?.1
            }
        };
        Some(Close { ids, ends_all: false })
    }

    /// Whether a text is over after `token`, which is `mark`; after `<` it may be over with a slash.
    fn leaves(&self, matcher: &Matcher, mark: &[u8], token: u32) -> bool {
        let mut matcher = matcher.deep_clone();
        if matcher.consume_token(token).is_err() {
            return false;
        }
        if mark == OPEN {
            let slashes = IN_TEXT.iter().zip(&self.in_text).filter(|(mark, _)| **mark == SLASH);
            let mut slashes = slashes.flat_map(|(_, ids)| ids);
            return slashes.any(|slash| self.leaves(&matcher, SLASH, *slash));
        }
        !matcher.consume_ff_tokens().is_empty()
            || is_over(&matcher)
            || matcher.compute_mask().is_ok_and(|allowed| !is_text(allowed.as_slice()))
    }

    /// Tokens of the shortest end from a state on, the one that ends the completion among them; `None` where none is found.
    pub fn length(&self, matcher: &Matcher) -> Option<usize> {
        let mut matcher = matcher.deep_clone();
        let mut length = 0;
        for _ in 0..CHOICES {
            length += matcher.consume_ff_tokens().len();
            if is_over(&matcher) {
                return Some(length);
            }
            let allowed = matcher.compute_mask().ok()?;
            let token = match self.close(&matcher, allowed.as_slice()) {
                Some(close) if close.ends_all => return Some(length + 1),
                Some(close) => *close.ids.first()?,
                // A choice that the model makes, or the first word of a text.
                None => first(&self.direct(allowed.as_slice()))?,
            };
            matcher.consume_token(token).ok()?;
            length += 1;
        }
        None
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Whether a token begins a further item, or opens more than one thing.
fn goes_on(bytes: &[u8]) -> bool {
    let has = |marks: &[u8]| bytes.iter().any(|byte| marks.contains(byte));
    has(b",") && has(b"\"{}[")
        || has(b"[") && has(b"\"{")
        || bytes.windows(2).any(|two| two == b"[[")
}

/// Between the parts of a record a grammar allows few tokens, in a text most.
fn is_text(allowed: &[u32]) -> bool {
    let count: u32 = allowed.iter().map(|word| word.count_ones()).sum();
    count > 8 * allowed.len() as u32
}

pub fn is_over(matcher: &Matcher) -> bool {
    matches!(matcher.stop_reason(), StopReason::NoExtension | StopReason::EndOfSentence)
}

/// How near the end of its tokens a completion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Enough,
    /// Nothing more may be begun.
    Approaching,
    /// All that is open must be closed.
    Closing,
}

/// What watches over the tokens that a completion has left.
pub struct Budget {
    /// Tokens of the grammar's shortest text.
    pub shortest: Option<usize>,
    closers: Arc<Closers>,
    room: Room,
    /// With so many tokens left the end is looked for again; 0: never.
    look_at: usize,
    /// Whether anything else was allowed where an end was forced.
    pub is_cut: bool,
}

impl Budget {
    pub fn new(closers: Arc<Closers>, shortest: Option<usize>) -> Budget {
        let look_at = shortest.map_or(0, |shortest| shortest + APPROACH);
        Budget { shortest, closers, room: Room::Enough, look_at, is_cut: false }
    }

    /// Looks how much room there is where `left` tokens are left.
    pub fn look(&mut self, matcher: &Matcher, left: usize) {
        if left > self.look_at || self.room == Room::Closing {
            return;
        }
        let shortest = self.closers.length(matcher);
        let Some(shortest) = shortest.filter(|shortest| left >= *shortest) else {
            // It cannot end whole: it is cut where its tokens end, and says what it would have said until then.
            self.look_at = 0;
            return;
        };
        self.room = match left {
            _ if left <= shortest + MARGIN => Room::Closing,
            _ if left <= shortest + APPROACH => Room::Approaching,
            _ => Room::Enough,
        };
        // Where there is room for more, half of it.
        let spare = left.saturating_sub(shortest + MARGIN);
        self.look_at = (shortest + APPROACH).min(left - spare.div_ceil(2).max(1));
    }

    /// What is left of `allowed`, after the token `last`.
    pub fn narrow(
        &mut self,
        matcher: &Matcher,
        allowed: Arc<[u32]>,
        last: Option<u32>,
    ) -> Arc<[u32]> {
        let is_in_number = || last.is_some_and(|last| has(&self.closers.digits, last));
        let close = match (self.room, is_text(&allowed)) {
            (Room::Enough, _) => return allowed,
            // 0.8 is not cut to 0.
            (_, false) if is_in_number() => return allowed,
            (Room::Approaching, true) => None,
            _ => self.closers.close(matcher, &allowed),
        };
        let Some(close) = close else { return self.closers.direct(&allowed) };
        let narrowed = only(&close.ids, allowed.len());
        self.is_cut |= narrowed != allowed;
        narrowed
    }
}

/// A mask of `words` words that allows `ids` alone.
pub fn only(ids: &[u32], words: usize) -> Arc<[u32]> {
    let mut mask = vec![0; words];
    for id in ids {
        mask[*id as usize / 32] |= 1 << (id % 32);
    }
    mask.into()
}

fn has(mask: &[u32], id: u32) -> bool {
    mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
}

fn first(mask: &[u32]) -> Option<u32> {
    let (index, word) = (0..).zip(mask).find(|(_, word)| **word != 0)?;
    Some(32 * index + word.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::Grammar;
    use crate::engine::constraint::Compiler;
    use crate::model::Family;
    use crate::random::SplitMix64;
    use crate::synth::{Recipe, Shape, write_with_our_words};

    fn tokenizer() -> Arc<Tokenizer> {
        let directory = tempfile::tempdir().unwrap();
        let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_with_our_words(&recipe, directory.path()).unwrap();
        Arc::new(Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap())
    }

    fn grammars() -> Vec<Grammar> {
        let text = json!({"type": "string", "maxLength": 400});
        let part = json!({
            "type": "object",
            "properties": {"option": text, "why": text},
            "required": ["option", "why"],
            "additionalProperties": false,
        });
        let record = json!({
            "type": "object",
            "properties": {
                "reasons": {"type": "array", "items": text, "maxItems": 8},
                "ruled_out": {"type": "array", "items": part, "minItems": 1, "maxItems": 6},
                "answer": {"enum": ["A", "B"]},
                "confidence": {"enum": [0, 0.25, 0.5, 0.75, 1]},
            },
            "required": ["reasons", "ruled_out", "answer", "confidence"],
            "additionalProperties": false,
        });
        let thought = "<think>(?s:[^<]|<[^/]){1,2000}</think>\n<result>([1-9]|NAN)</result>";
        vec![
            Grammar::JsonSchema(record.to_string()),
            Grammar::Regex(thought.to_owned()),
            Grammar::Regex("(?s:.{1,2000})".to_owned()),
            Grammar::JsonObject,
        ]
    }

    /// What a model says that draws any token that is allowed: the text, whether it was cut, and whether it is whole.
    fn babble(
        compiler: &Compiler,
        grammar: &Grammar,
        most: usize,
        seed: u64,
    ) -> (Vec<u32>, bool, bool) {
        const EOS: u32 = 1;
        let mut random = SplitMix64::new(seed);
        let mut state = compiler.compile(grammar).unwrap().start();
        let mut tokens = state.force();
        let present = vec![u32::MAX; 1 << 12];
        while tokens.len() < most && !state.is_complete() {
            let allowed = state.allowed(&present, most - tokens.len()).unwrap();
            let ids: Vec<u32> =
                (0..32 * allowed.len() as u32).filter(|id| has(&allowed, *id)).collect();
            let token = ids[random.below(ids.len() as u64) as usize];
            tokens.push(token);
            if token == EOS {
                return (tokens, state.is_cut(), true);
            }
            assert!(state.accept(token));
            tokens.extend(state.force());
        }
        let is_whole = state.is_complete() && tokens.len() <= most;
        (tokens, state.is_cut(), is_whole)
    }

    #[test]
    fn what_fits_within_its_tokens_ends_whole_whatever_the_model_draws() {
        let tokenizer = tokenizer();
        let rows = tokenizer.pieces().len();
        let compiler = Compiler::new(tokenizer.clone(), rows, &[1]);
        for grammar in grammars() {
            let start = compiler.compile(&grammar).unwrap().start();
            let shortest = start.shortest().unwrap_or_else(|| panic!("{grammar:?}"));
            for most in (shortest + MARGIN..shortest + 300).step_by(23) {
                for seed in 0..4 {
                    let (tokens, is_cut, is_whole) = babble(&compiler, &grammar, most, seed);
                    let text: Vec<u8> =
                        tokens.iter().flat_map(|id| tokenizer.bytes(*id).to_vec()).collect();
                    let text = String::from_utf8_lossy(&text);
                    assert!(is_whole, "{most} tokens, cut: {is_cut}: {text}");
                }
            }
        }
    }

    #[test]
    fn what_has_room_is_not_cut() {
        let tokenizer = tokenizer();
        let compiler = Compiler::new(tokenizer.clone(), tokenizer.pieces().len(), &[1]);
        for grammar in grammars() {
            let (tokens, is_cut, is_whole) = babble(&compiler, &grammar, 100_000, 5);
            assert!(is_whole && !is_cut, "{} tokens", tokens.len());
        }
    }
}
