//! The shortest end of a completion under a grammar, which is forced where the tokens that are left allow no other.

use std::sync::Arc;

use llguidance::Matcher;
use llguidance::api::StopReason;

use crate::tokenizer::{Piece, Tokenizer};

/// What ends a list, a record, a tag or a value between texts; of those that a grammar allows, the first.
const BETWEEN: [&[u8]; 7] = [b"]", b"}", b"</", b"<", b",", b":", b"\""];

/// So many of them end what has items.
const ENDS: usize = 4;

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
    pub tokenizer: Arc<Tokenizer>,
    eos_ids: Vec<u32>,
    between: [Vec<u32>; BETWEEN.len()],
    in_text: [Vec<u32>; IN_TEXT.len()],
    /// Two letters that hardly any words of a grammar both go on with.
    pub letters: [Vec<u32>; 2],
    /// One for each token of white space, and for each that goes on with a list or opens more than one thing: `", "`, `[{`.
    others: Arc<[u32]>,
}

/// What ends something where a grammar stands.
struct Close {
    ids: Vec<u32>,
    /// Whether a list, a record or a tag ends with it.
    ends: bool,
    ends_all: bool,
}

impl Closers {
    pub fn new(tokenizer: Arc<Tokenizer>, eos_ids: &[u32]) -> Closers {
        let pieces = tokenizer.pieces();
        let ids = |is: &dyn Fn(&[u8]) -> bool| -> Vec<u32> {
            let is = |piece: &Piece| matches!(piece, Piece::Text(bytes) if is(bytes));
            (0..).zip(pieces.iter()).filter(|(_, piece)| is(piece)).map(|(id, _)| id).collect()
        };
        let marks = |mark: &[u8]| ids(&|bytes| bytes == mark);
        let others = ids(&|bytes| !bytes.is_empty() && (is_blank(bytes) || goes_on(bytes)));
        Closers {
            eos_ids: eos_ids.to_vec(),
            between: BETWEEN.map(marks),
            in_text: IN_TEXT.map(marks),
            letters: [b"q", b"Z"].map(|letter| marks(letter)),
            others: only(&others, pieces.len().div_ceil(32)),
            tokenizer,
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
            return Some(Close { ids, ends: true, ends_all: true });
        }
        let (place, ids) = match is_text(allowed) {
            false => {
                let mut marks = self.between.iter().map(|ids| among(ids)).enumerate();
                marks.find(|(_, ids)| !ids.is_empty())?
            }
            true => {
                let marks = IN_TEXT.iter().zip(&self.in_text).map(|(mark, ids)| (mark, among(ids)));
                let ends = |(mark, ids): &(&&[u8], Vec<u32>)| {
                    ids.first().is_some_and(|id| self.leaves(matcher, mark, *id))
                };
                (ENDS, marks.into_iter().find(ends)?.1)
            }
        };
        Some(Close { ids, ends: place < ENDS, ends_all: false })
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

/// Whether a token goes on in a number after one of its digits.
fn is_of_number(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte))
}

/// Between the parts of a record a grammar allows few tokens, in a text most.
pub fn is_text(allowed: &[u32]) -> bool {
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
    pub closers: Arc<Closers>,
    room: Room,
    /// With so many tokens left the end is looked for again; 0: never.
    look_at: usize,
    /// Whether the model would have said something else than it was made to.
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

    pub fn has_room(&self) -> bool {
        self.room == Room::Enough
    }

    /// What is to be drawn from instead of `token`, if that leaves no room for an end.
    pub fn instead(&mut self, place: &Place, token: u32) -> Option<Arc<[u32]>> {
        let bytes = self.closers.tokenizer.bytes(token);
        let is_said = is_blank(bytes) || is_text(place.allowed) && !goes_on(bytes);
        if self.has_room() || self.room == Room::Approaching && is_said {
            return None;
        }
        let close = self.closers.close(place.matcher, place.allowed);
        if self.fits(place, close.as_ref(), token) {
            return None;
        }
        self.is_cut = true;
        Some(match close {
            Some(close) => only(&close.ids, place.allowed.len()),
            None => self.closers.direct(place.allowed),
        })
    }

    /// Whether `token` may come where `close` would end what is open.
    fn fits(&self, place: &Place, close: Option<&Close>, token: u32) -> bool {
        let Place { matcher, allowed, last, left } = *place;
        let is_text = is_text(allowed);
        let Some(close) = close else {
            return is_text || has(&self.closers.direct(allowed), token);
        };
        if close.ids.contains(&token) {
            return true;
        }
        let bytes = |token| self.closers.tokenizer.bytes(token);
        let begins_nothing = !close.ends && !goes_on(bytes(token)) || is_text && close.ends_all;
        if self.room == Room::Approaching && begins_nothing {
            return true;
        }
        let length = |matcher: &Matcher| self.closers.length(matcher);
        let is_in_number =
            last.is_some_and(|last| bytes(last).last().is_some_and(u8::is_ascii_digit));
        // 0.8 is not cut to 0.
        if !is_text && is_in_number && is_of_number(bytes(token)) {
            return length(matcher).is_some_and(|length| left > length + 1);
        }
        // What says its end in another way: `" ]"`, `"]}"`. An end that was begun is brought about without more ado.
        let mut after = matcher.deep_clone();
        !(self.room == Room::Closing && self.is_cut)
            && after.consume_token(token).is_ok()
            && length(&after).is_some_and(|after| length(matcher).is_some_and(|now| after < now))
    }
}

/// Where a token was drawn.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub matcher: &'a Matcher,
    /// What the grammar allows there.
    pub allowed: &'a Arc<[u32]>,
    /// The token before it.
    pub last: Option<u32>,
    /// Tokens that the completion has left, this one among them.
    pub left: usize,
}

/// A mask of `words` words that allows `ids` alone.
pub fn only(ids: &[u32], words: usize) -> Arc<[u32]> {
    let mut mask = vec![0; words];
    for id in ids {
        mask[*id as usize / 32] |= 1 << (id % 32);
    }
    mask.into()
}

pub fn has(mask: &[u32], id: u32) -> bool {
    mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
}

fn first(mask: &[u32]) -> Option<u32> {
    let (index, word) = (0..).zip(mask).find(|(_, word)| **word != 0)?;
    Some(32 * index + word.trailing_zeros())
}

#[cfg(test)]
mod tests;
