//! Splits running text into sentences: at their ends, and at line ends that are no hard wrap.
//!
//! Every character is looked at a bounded number of times, so that a note of any length takes time in proportion to it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

const ENDS: &str = ".!?。！？؟";
/// Ends that need no whitespace after them.
const FULL_WIDTH_ENDS: &str = "。！？";
const CLOSERS: &str = "\"')]”’」）";
/// What may stand before a word.
const OPENERS: &str = "([\"'“‘";
/// What begins an item of a list.
const BULLETS: &str = "-*•–—·▪◦>";
/// Shorter lines are no wrapped ones: lists of words look like that.
const SHORTEST_WRAPPED: usize = 30;
/// A longer text before a colon is no heading.
const LONGEST_HEADING: usize = 40;
/// No abbreviation or number of a list has more characters. A word of any length may have a full stop at every other one.
const LONGEST_WORD: usize = 40;

/// Words that begin a sentence rather than go on with a name.
const BEGINS: &str =
    "A After An At He Her His I In It No On Patient She The Their There They This We";

/// Whether a full stop after the word may end a sentence, by words in lower case.
static ABBREVIATIONS: LazyLock<HashMap<&str, bool>> = LazyLock::new(|| {
    let lines = include_str!("abbreviations.txt").lines();
    let words = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    words.map(|line| line.strip_suffix(" .").map_or((line, false), |word| (word, true))).collect()
});

/// The sentences of running text: they end at line ends, after . ! ? before whitespace, and after 。 ！ ？.
///
/// No full stop ends a sentence after an abbreviation, such as `Dr.`, `i.v.` or the genus in `S. aureus`; one after any other single letter
/// does, as in `hepatitis A.`. Closing quotes and brackets stay with the sentence. A line that ends within a sentence goes on in the next
/// one where that begins in lower case, or where the text is wrapped at a width, unless either is a heading or the next an item of a list.
/// A sentence may thus hold a line end: see [`one_line`].
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for block in blocks(text) {
        split_block(&text[block], &mut sentences);
    }
    sentences
}

/// A sentence with spaces where its lines were wrapped.
pub(super) fn one_line(sentence: &str) -> String {
    sentence.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The lines of a text that are not blank, wrapped ones together.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
    let length = |line: &str| line.chars().count();
    let width = lines.iter().map(|line| length(line)).max().unwrap_or_default();
    // Whether a line ends within a sentence, as far as can be seen.
    let is_open = |pair: &&[&str]| !pair.contains(&"") && may_go_on(pair[0], pair[1]);
    let is_full = |pair: &[&str]| {
        let word = pair[1].split_whitespace().next().unwrap_or_default();
        length(pair[0]) >= SHORTEST_WRAPPED && length(pair[0]) + 1 + length(word) > width
    };
    let opened: Vec<_> = lines.windows(2).filter(is_open).collect();
    let full = opened.iter().filter(|pair| is_full(pair)).count();
    let is_wrapped = full >= 3 && 5 * full >= 4 * opened.len();
    let goes_on = |pair: &[&str]| {
        let is_continued = length(pair[0]) >= SHORTEST_WRAPPED
            && (pair[1].starts_with(char::is_lowercase) || pair[0].ends_with(','));
        is_open(&pair) && (is_continued || is_wrapped && is_full(pair))
    };
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let is_more = at > 0 && goes_on(&lines[at - 1..=at]);
        match blocks.last_mut().filter(|_| is_more) {
            Some(block) => block.end = start + line.len(),
            None => blocks.push(start..start + line.len()),
        }
    }
    blocks
}

/// Whether a line may be the first part of a sentence that `next` goes on with.
fn may_go_on(line: &str, next: &str) -> bool {
    let end = line.trim_end_matches(|c| CLOSERS.contains(c));
    let is_ended = match end.strip_suffix('.') {
        Some(before) => !is_open(before, next),
        None => end.ends_with(|c| ENDS.contains(c) || ":：".contains(c)),
    };
    !is_ended && !is_capitals(line) && !is_item(next) && !is_heading(next)
}

/// Whether a line begins like an item of a list: with a bullet, or a number or letter and a stop or bracket.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < line.len() && rest.starts_with(['.', ')', '、']);
    let mut chars = line.chars();
    let is_lettered = chars.next().is_some_and(char::is_alphabetic) && chars.next() == Some(')');
    line.starts_with(|c| BULLETS.contains(c)) || is_numbered || is_lettered
}

/// Whether a line begins with a heading: `Plan:`, `PAST MEDICAL HISTORY`.
fn is_heading(line: &str) -> bool {
    let first: String = line.chars().take(LONGEST_HEADING).collect();
    let title = first.split([':', '：']).next().unwrap_or_default();
    let has_colon = title.len() < first.len();
    has_colon && title.starts_with(char::is_uppercase) && !title.contains(['.', ',', ';'])
        || is_capitals(line)
}

fn is_capitals(line: &str) -> bool {
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    letters >= 3 && !line.chars().any(|c| c.is_lowercase() || c.is_ascii_digit()) && line.is_ascii()
}

fn split_block<'a>(block: &'a str, sentences: &mut Vec<&'a str>) {
    let mut start = 0;
    for (at, mark) in block.char_indices() {
        if at < start || !ENDS.contains(mark) {
            continue;
        }
        let rest = &block[at + mark.len_utf8()..];
        let after = rest.trim_start_matches(|c| CLOSERS.contains(c));
        let goes_on = after.starts_with(|c| ENDS.contains(c));
        let is_cut = FULL_WIDTH_ENDS.contains(mark) || after.starts_with(char::is_whitespace);
        if goes_on || !is_cut {
            continue;
        }
        let next = after.trim_start();
        if mark == '.' {
            let before = &block[start..at];
            let is_number = !before.is_empty() && before.bytes().all(|c| c.is_ascii_digit());
            if is_number || is_open(before, next) {
                continue;
            }
        }
        sentences.push(&block[start..block.len() - after.len()]);
        start = block.len() - next.len();
    }
    if start < block.len() {
        sentences.push(block[start..].trim_end());
    }
}

/// The characters before a full stop, back to a space; nothing of a word that is longer than any abbreviation.
fn last_word(before: &str) -> &str {
    let mut characters = before.char_indices().rev().take(LONGEST_WORD + 1);
    match characters.find(|(_, c)| c.is_whitespace()) {
        Some((at, space)) => &before[at + space.len_utf8()..],
        None if before.chars().take(LONGEST_WORD + 1).count() <= LONGEST_WORD => before,
        None => "",
    }
}

/// Whether a sentence goes on after this text and a full stop, where `next` follows.
fn is_open(before: &str, next: &str) -> bool {
    let kind = |word: &str| ABBREVIATIONS.get(word.to_lowercase().as_str()).copied();
    let is_letter =
        |word: &str| word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase());
    let whole = last_word(before);
    let word = whole.trim_start_matches(|c| OPENERS.contains(c));
    // An ellipsis.
    if word.ends_with('.') {
        return next.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit());
    }
    // The initial of a name: «Dr. A. Smith», but not «seen by Dr. A. He …».
    let title = before[..before.len() - whole.len()].trim_end().strip_suffix('.').map(last_word);
    let follows_title = title.is_some_and(|title| kind(title) == Some(false) || is_letter(title));
    let first = next.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match kind(word) {
        Some(false) => true,
        _ if is_letter(word) && follows_title => !BEGINS.split(' ').any(|one| one == first),
        Some(true) => {
            let first_two = next.chars().take(2);
            let capitals = first_two.filter(|c| c.is_uppercase() || c.is_ascii_digit()).count();
            next.is_empty() || capitals == 2 || !next.starts_with(char::is_uppercase)
        }
        None => is_letter(word) && next.starts_with(char::is_lowercase),
    }
}

#[cfg(test)]
mod tests;
