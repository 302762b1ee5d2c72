//! How items and what agents said of them stand in a prompt.

use crate::data::{Note, Question};
use crate::text::ellipsis;

/// A question's options, a line each: `A: aspirin`.
pub fn option_lines(question: &Question) -> String {
    let lines: Vec<String> = question
        .options
        .iter()
        .map(|option| format!("{}: {}", option.letter, option.text))
        .collect();
    lines.join("\n")
}

/// A line a sentence, its number before it.
pub fn numbered(note: &Note) -> String {
    let lines = note.sentences.iter().enumerate();
    let lines: Vec<String> = lines.map(|(id, text)| format!("{id} {text}")).collect();
    lines.join("\n")
}

/// `text` on one line, cut after `chars` characters with `…` in place of the rest. On one line, so that no text can pass for another
/// line of a prompt.
pub fn truncate(text: &str, chars: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    ellipsis(&words.join(" "), chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_characters() {
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("abcd", 3), "abc…");
        assert_eq!(truncate("Überdosis", 4), "Über…");
        assert_eq!(truncate("心电图正常", 2), "心电…");
        assert_eq!(truncate("🫀🫁🧠", 2), "🫀🫁…");
        assert_eq!(truncate("  a \n\t b  ", 9), "a b");
        assert_eq!(truncate("", 1), "");
    }
}
