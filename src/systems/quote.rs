//! What a search found, in a prompt. The log keeps it by reference, so that it holds no text of a corpus that may not be copied.

use crate::prompts::passages;
use crate::record::{Message, Part, SearchLine, SearchPlace};

/// Where passages belong in a prompt that is filled in: no character of a text.
pub const PASSAGES: &str = "\u{fdd0}passages\u{fdd1}";

/// What was found, as a prompt quotes it.
#[derive(Clone)]
pub struct Found {
    place: SearchPlace,
    text: String,
}

impl Found {
    /// By the template of a passage.
    pub fn new(found: &SearchLine, template: &str) -> Found {
        let SearchLine { round, step, .. } = *found;
        Found { place: SearchPlace { round, step }, text: passages(template, found) }
    }
}

/// The messages with what was found in the last.
pub fn quote(mut messages: Vec<Message>, found: Option<&Found>) -> Vec<Message> {
    let Some(last) = messages.pop() else { return messages };
    messages.push(match found {
        Some(found) => quoted(&last.role, &last.content, std::slice::from_ref(found)),
        None => Message::new("user", last.content.replace(PASSAGES, "")),
    });
    messages
}

/// A message of a text, in which [`PASSAGES`] stands where each search's find belongs.
pub fn quoted(role: &str, text: &str, found: &[Found]) -> Message {
    let part = |text: &str| (Part::Text(text.to_owned()), text.to_owned());
    let mut texts = text.splitn(found.len() + 1, PASSAGES);
    let mut parts: Vec<_> = texts.next().map(part).into_iter().collect();
    for (found, after) in found.iter().zip(texts) {
        parts.push((Part::Passages { passages: found.place }, found.text.clone()));
        parts.push(part(after));
    }
    Message::of_parts(role, parts)
}
