//! Whether a server's words quote a prompt.

use std::collections::HashSet;

use crate::record::Message;
use crate::text::Pattern;

/// Letters and digits in a row that a server's words have in common with a prompt only where they quote it: about 20 characters.
const SHARED: usize = 16;

/// A letter or digit, or what JSON or Python have escaped.
static LETTER: Pattern =
    Pattern::new(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrt])|[\p{Alphabetic}\p{N}]");

/// Whether the text quotes the messages, whatever became of blanks, signs and escapes in between.
pub fn quotes(text: &str, sent: &[Message]) -> bool {
    let sent: Vec<Vec<char>> = sent.iter().map(|message| letters(&message.content)).collect();
    let sent: HashSet<&[char]> = sent.iter().flat_map(|letters| letters.windows(SHARED)).collect();
    letters(text).windows(SHARED).any(|letters| sent.contains(letters))
}

/// The letters and digits of a text, escaped ones (`\u60a3`) as they were.
fn letters(text: &str) -> Vec<char> {
    let letter = |found: &str| match found.strip_prefix('\\') {
        None => found.chars().next(),
        // Line ends and halves of a pair are no letters.
        Some(escaped) => u32::from_str_radix(&escaped[1..], 16).ok().and_then(char::from_u32),
    };
    let letters = LETTER.find_iter(text).filter_map(|found| letter(found.as_str()));
    letters.filter(|letter| letter.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_of_a_prompt_is_found_however_it_is_written() {
        let note = "Mr Doe, 54, has had fever\nsince Monday; he got \"aspirin\".";
        let sent = [Message::new("system", "Be brief."), Message::new("user", note)];
        for quoted in [
            note.to_owned(),
            serde_json::json!(note).to_string(),
            note.replace(' ', "  "),
            note[8..40].to_owned(),
        ] {
            assert!(quotes(&format!("400: bad input {quoted} in messages[1]"), &sent), "{quoted}");
        }
        for text in ["", "seed", "the prompt has 54 tokens; Be brief.", "an error since Monday"] {
            assert!(!quotes(text, &sent), "{text}");
        }
        let note = "患者は三日前から発熱し咳と呼吸困難を訴えている";
        let sent = [Message::new("user", note)];
        let escaped: String = note.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        assert!([note, &escaped].iter().all(|quoted| quotes(&format!("bad: {quoted}!"), &sent)));
    }
}
