//! What a text makes of all options one by one: lines that repeat them, lines that mark each right or wrong, and their order.

use super::standing::{is_blank, plain};
use crate::data::Choice;
use crate::text::Pattern;

/// What lines that judge options come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// One is called right.
    One(char),
    /// Several are.
    Unclear,
    /// No options are judged line by line.
    Nothing,
}

/// A line, or a row of a table, about the option whose letter it begins with.
static LINE: Pattern = Pattern::new(
    r"(?m)^[\s>#*_|•✓✔✅✗✘❌-]*(?:\d{1,2}[.)]\s*)?[*_(\[]*(?i:option\s+)?([A-J])(?:[\s*_]*(?:[)\].:|*_–—(,-][^\n]*)?)$",
);
static RIGHT: Pattern = Pattern::new(
    r"[✓✔✅☑]|(?i)\b(?:correct|best|most likely)\b|[-–—:|(*]\s*(?i:right)\b|(?i)\bright (?:answer|option|choice|one)\b|\b(?:is|are|be) right\b",
);
static WRONG: Pattern = Pattern::new(
    r"[✗✘❌✖]|(?i)\b(?:incorrect|wrong|false|unlikely|less likely|ruled out|excluded|(?:not|isn't|least|never) (?:the )?(?:correct|right|best|most likely|likely))\b",
);

/// The one option whose line marks it right, where options are judged line by line.
pub fn by_marks(text: &str, options: &[Choice]) -> Marked {
    let lines = LINE.captures_iter(text).filter_map(|line| {
        let letter = line[1].chars().next()?;
        let option = options.iter().find(|option| option.letter == letter)?;
        // What the option itself says judges nothing.
        let said = match option.text.is_empty() {
            true => line[0].to_owned(),
            false => line[0].replace(&option.text, " "),
        };
        Some((letter, !WRONG.is_match(&said) && RIGHT.is_match(&said)))
    });
    let lines: Vec<(char, bool)> = lines.collect();
    let right: Vec<char> = lines.iter().filter(|line| line.1).map(|line| line.0).collect();
    match right[..] {
        _ if lines.len() < 2 => Marked::Nothing,
        [] => Marked::Nothing,
        [one] => Marked::One(one),
        _ => Marked::Unclear,
    }
}

/// The option whose letter and text are a text's first line, where no other line says an option again.
pub fn by_first_line(text: &str, options: &[Choice]) -> Option<char> {
    let said = |line: &str| options.iter().find(|one| repeats(line, one));
    if is_list(text, options) {
        return None;
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = said(lines.next()?)?;
    lines.all(|line| said(line).is_none()).then_some(first.letter)
}

/// The first of an order such as «D > B > A».
pub fn by_order(text: &str) -> Option<char> {
    static ORDER: Pattern =
        Pattern::new(r"(?:^|[\s:(*])([A-J])[)*]*(?:\s*>{1,2}\s*[(*]*[A-J][)*]*){2,}(?:[\s.,;)]|$)");
    ORDER.captures(text)?[1].chars().next()
}

/// A text without lines that say again what the options are, where there are two of them or more.
pub fn without_options(text: &str, options: &[Choice]) -> String {
    let is_option = |line: &&str| options.iter().any(|one| repeats(line, one));
    let repeated = text.lines().filter(is_option).count();
    if repeated < 2 {
        return text.to_owned();
    }
    // A list of them all with a slip in it is still that list.
    let is_slip = |line: &str| LINE.is_match(line) && line.split_whitespace().count() > 1;
    let has_slips = 2 * repeated >= options.len() && is_list(text, options);
    let is_kept = |line: &&str| !(is_option(line) || has_slips && is_slip(line));
    text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

/// Whether lines of a text begin with the options' letters in their order, from the first to the last or to the one before it.
fn is_list(text: &str, options: &[Choice]) -> bool {
    let mut due = options.iter().map(|option| option.letter).peekable();
    for line in LINE.captures_iter(text) {
        if line[1].chars().next() == due.peek().copied() {
            due.next();
        }
    }
    options.len() > 2 && due.count() < 2
}

/// Whether a line is an option's letter and text. A text without words counts as it is written, and one that is empty never.
fn repeats(line: &str, option: &Choice) -> bool {
    match is_blank(&plain(&option.text)) {
        true => {
            let text = option.text.trim();
            let before = line.trim().strip_suffix(text).filter(|_| !text.is_empty());
            before.is_some_and(|before| plain(before) == plain(&option.letter.to_string()))
        }
        false => plain(line) == plain(&format!("{} {}", option.letter, option.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::question;

    #[test]
    fn one_line_that_is_marked_right_is_the_answer() {
        let marked = |text: &str| by_marks(text, &question(4).options);
        for text in [
            "A. option A - Incorrect\nB. option B - Correct",
            "| A | wrong |\n| B | correct |\n| C | not correct |",
            "1. B (option B) – most likely\n2. A (option A)",
            "✅ B\n❌ A, C",
        ] {
            assert_eq!(marked(text), Marked::One('B'), "{text}");
        }
        assert_eq!(marked("A: right\nB: right"), Marked::Unclear);
        for text in ["A. option A\nB. option B", "B: correct", "", "The best is B."] {
            assert_eq!(marked(text), Marked::Nothing, "{text}");
        }
    }

    #[test]
    fn the_first_of_an_order_is_the_answer() {
        assert_eq!(by_order("From likely to unlikely: D > B > A."), Some('D'));
        assert_eq!(by_order("A > B"), None);
        assert_eq!(by_order("glucose > 200, pH > 7"), None);
    }

    #[test]
    fn options_that_are_said_again_say_nothing() {
        let options = &question(3).options;
        assert_eq!(without_options("A: option A\n(B) option B\nSo B.", options), "So B.");
        assert_eq!(without_options("B: option B", options), "B: option B");
        // With a slip, and with one too many.
        assert_eq!(without_options("A: option A\nB: option B\nC: optoin C", options), "");
        assert_eq!(by_first_line("A: option A\nB: optoin B\nC: option see", options), None);
    }

    #[test]
    fn a_first_line_that_is_an_option_is_the_answer() {
        let first = |text: &str| by_first_line(text, &question(3).options);
        assert_eq!(first("**B: option B**\n\nA is milder.\nC: rarer"), Some('B'));
        assert_eq!(first("A: option A\nB: option B\n\nSo B."), None);
        assert_eq!(first("I think B: option B"), None);
    }

    #[test]
    fn a_side_of_the_body_marks_nothing() {
        let options = &question(4).options;
        assert_eq!(by_marks("A: fits.\nB: in it the right", options), Marked::Nothing);
        assert_eq!(by_marks("A: no.\nB: this is right", options), Marked::One('B'));
    }
}
