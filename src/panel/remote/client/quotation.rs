//! Cuts from a server's words what they quote of a prompt.

use std::collections::HashSet;
use std::ops::Range;

use crate::record::Message;
use crate::text::Pattern;

/// Letters and digits in a row that a server's words have in common with a prompt only where they quote it: about 20 characters.
const SHARED: usize = 16;

/// A letter or digit, or what JSON or Python have escaped.
static LETTER: Pattern =
    Pattern::new(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrt])|[\p{Alphabetic}\p{N}]");

/// The text with `…` in place of what it quotes of the messages, whatever became of blanks, signs and escapes in between.
pub fn without_quotations(text: &str, sent: &[Message]) -> String {
    let of = |message: &Message| letters(&message.content).map(|(_, letter)| letter).collect();
    let sent: Vec<Vec<char>> = sent.iter().map(of).collect();
    let sent: HashSet<&[char]> = sent.iter().flat_map(|letters| letters.windows(SHARED)).collect();
    let (places, own): (Vec<Range<usize>>, Vec<char>) = letters(text).unzip();
    let (mut cut, mut done) = (String::new(), 0);
    let windows = own.windows(SHARED).zip(places.windows(SHARED));
    for (_, places) in windows.filter(|(letters, _)| sent.contains(letters)) {
        let (start, end) = (places[0].start, places[SHARED - 1].end);
        if start >= done {
            cut += &text[done..start];
            cut.push('…');
        }
        done = end;
    }
    cut + &text[done..]
}

/// The letters and digits of a text, escaped ones (`\u60a3`) as they were, and the bytes that each stands in.
fn letters(text: &str) -> impl Iterator<Item = (Range<usize>, char)> {
    LETTER.find_iter(text).filter_map(|found| {
        let letter = match found.as_str().strip_prefix('\\') {
            None => found.as_str().chars().next(),
            // Line ends and halves of a pair are no letters.
            Some(escaped) => u32::from_str_radix(&escaped[1..], 16).ok().and_then(char::from_u32),
        };
        let letter = letter.filter(|letter| letter.is_alphanumeric());
        letter.map(|letter| (found.range(), letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_of_a_prompt_is_cut_however_it_is_written() {
        let note = "Mr Doe, 54, has had fever\nsince Monday; he got \"aspirin\".";
        let sent = [Message::new("system", "Be brief."), Message::new("user", note)];
        let cut = |text: &str| without_quotations(text, &sent);
        for quoted in [
            note.to_owned(),
            serde_json::json!(note).to_string(),
            note.replace(' ', "  "),
            format!("{note} {note}"),
            note[8..40].to_owned(),
        ] {
            let text = cut(&format!("400: bad input {quoted} in messages[1]"));
            assert!(text.starts_with("400: bad input ") && text.ends_with(" in messages[1]"));
            assert!(!["fever", "Monday", "54"].iter().any(|word| text.contains(word)), "{text}");
        }
        for text in ["", "seed", "the prompt has 54 tokens; Be brief.", "an error since Monday"] {
            assert_eq!(cut(text), text);
        }
        let note = "患者は三日前から発熱し咳と呼吸困難を訴えている";
        let sent = [Message::new("user", note)];
        let escaped: String = note.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        for quoted in [note, &escaped] {
            assert_eq!(without_quotations(&format!("bad: {quoted}!"), &sent), "bad: …!");
        }
    }
}
