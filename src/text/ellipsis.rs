//! Long texts cut for display.

/// The first `chars` characters, and `…` where more follow.
pub fn ellipsis(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_characters() {
        assert_eq!(ellipsis("abcd", 3), "abc…");
        assert_eq!(ellipsis("心电图", 3), "心电图");
        assert_eq!(ellipsis("🫀🫁🧠", 2), "🫀🫁…");
    }
}
