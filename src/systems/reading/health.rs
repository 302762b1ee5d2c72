//! Texts that say nothing: without words, or in a loop.

/// Words that repeat at this distance at most are a loop.
const LONGEST_LOOP: usize = 60;
/// Repeated words that make a loop.
const REPEATED: usize = 24;

/// Whether a text has fewer than two words; digits and marks are none.
pub fn is_void(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let han = text.chars().filter(|c| ('\u{2E80}'..='\u{9FFF}').contains(c)).count();
    words.take(2).count() < 2 && han < 2
}

/// Whether a text says the same words over and over: a passage of up to 60 words three times or more in a row, and 24 words of it again.
pub fn is_looping(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    (1..=LONGEST_LOOP.min(words.len() / 2)).any(|distance| {
        let needed = REPEATED.max(2 * distance);
        let mut run = 0;
        words.iter().zip(&words[distance..]).any(|(one, later)| {
            run = if one == later { run + 1 } else { 0 };
            run >= needed
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_words_is_void() {
        for void in ["", "...", "12, 3", "{}", "word", "-_-"] {
            assert!(is_void(void), "{void}");
        }
        assert!(!is_void("two words") && !is_void("无误"));
    }

    #[test]
    fn a_passage_again_and_again_is_a_loop() {
        assert!(is_looping(&"the patient has a fever ".repeat(8)));
        assert!(is_looping(&"no ".repeat(40)));
        assert!(!is_looping(&"the patient has a fever ".repeat(2)));
        let counted: Vec<String> = (0..200).map(|number| format!("word{number}")).collect();
        assert!(!is_looping(&counted.join(" ")));
        assert!(!is_looping(""));
    }
}
