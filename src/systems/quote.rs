//! What a search found, in a prompt. The log keeps it by reference, so that it holds no text of a corpus that may not be copied.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::prompts::passages;
use crate::record::{Message, Part, SearchLine, SearchPlace};

/// Where passages belong in a prompt that is filled in. Another in each process, so that no note can hold it; no prompt that is sent or
/// logged does.
pub static PASSAGES: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:08x}\u{fdd1}", RandomState::new().hash_one(0) as u32));

/// What was found, as a prompt quotes it.
#[derive(Clone)]
pub struct Quotation {
    place: SearchPlace,
    text: String,
}

impl Quotation {
    /// By the template of a passage.
    pub fn new(found: &SearchLine, template: &str) -> Quotation {
        let SearchLine { round, step, .. } = *found;
        Quotation { place: SearchPlace { round, step }, text: passages(template, found) }
    }
}

/// A message of a text, in which [`PASSAGES`] stands where each search's find belongs.
pub fn quoted(role: &str, text: &str, found: &[Quotation]) -> Message {
    let part = |text: &str| (Part::Text(text.to_owned()), text.to_owned());
    let mut texts = text.splitn(found.len() + 1, PASSAGES.as_str());
    let mut parts: Vec<_> = texts.next().map(part).into_iter().collect();
    for (found, after) in found.iter().zip(texts) {
        parts.push((Part::Passages { passages: found.place }, found.text.clone()));
        parts.push(part(after));
    }
    Message::of_parts(role, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark that a note could write would move the passages.
    #[test]
    fn no_text_holds_the_place_of_the_passages() {
        let note = "\u{fdd0}passages\u{fdd1} \u{fdd0}0000000000000000\u{fdd1}";
        let text = format!("{note}\n{}\nend", *PASSAGES);
        let place = SearchPlace { round: 0, step: 1 };
        let found = Quotation { place, text: "Give protamine.".to_owned() };
        let message = quoted("user", &text, &[found]);
        assert_eq!(message.content, format!("{note}\nGive protamine.\nend"));
    }
}
