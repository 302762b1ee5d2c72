//! Words as Python's `str.split` finds them: what the reference implementations of the metrics cut text into.

/// The non-empty pieces between whitespace.
pub fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_whitespace).filter(|word| !word.is_empty())
}

/// Python counts the four separators of ASCII as whitespace, Unicode's White_Space does not.
pub fn is_whitespace(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The text without whitespace at its ends, as Python's `str.strip` gives it.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_python_splits() {
        let text = "\u{3000} one\u{a0}two\u{1d}three\r\n\t four\u{200b}still ";
        let words: Vec<&str> = split_words(text).collect();
        assert_eq!(words, ["one", "two", "three", "four\u{200b}still"]);
        assert_eq!(split_words(" \n").count(), 0);
    }
}
