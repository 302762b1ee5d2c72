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
    let text = |text: &str| (Part::Text(text.to_owned()), text.to_owned());
    messages.push(match (last.content.split_once(PASSAGES), found) {
        (Some((before, after)), Some(found)) => {
            let quoted = (Part::Passages { passages: found.place }, found.text.clone());
            Message::of_parts(&last.role, vec![text(before), quoted, text(after)])
        }
        (None, Some(_)) => Message::of_parts(&last.role, vec![text(&last.content)]),
        (_, None) => Message::new("user", last.content.replace(PASSAGES, "")),
    });
    messages
}
