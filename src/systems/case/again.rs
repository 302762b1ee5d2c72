//! Asking once more: for the record of a reply that could not be read.

use super::{Case, Record};
use crate::panel::{Asked, Call, PanelError};
use crate::record::{FinishReason, Message, Parse};
use crate::systems::reading::said;

/// What the purpose of a call ends with that asks again, for the record.
const AGAIN: &str = "-record";

/// Tokens of the record of a reply that could not be read, at most.
const RECORD_TOKENS: usize = 512;

impl<T> Case<'_, T> {
    /// Asks those of whose replies nothing was read for the record of what they said, which takes the reply's place where it is read. A reply
    /// without words says nothing that could be written down.
    pub(super) fn ask_again<R: Record>(
        &self,
        calls: Vec<Call>,
        asked: &mut [Asked<R>],
        read: &impl Fn(&str, FinishReason) -> (R, Parse),
    ) -> Result<(), PanelError> {
        let Some(reask) = &self.task.panel.settings.reask else { return Ok(()) };
        let mut again = Vec::new();
        for (place, (mut call, asked)) in calls.into_iter().zip(asked.iter()).enumerate() {
            let text = said(&asked.call.text);
            let has_words = text.chars().any(char::is_alphanumeric);
            if asked.call.parse == Parse::Unread && has_words && call.grammar.is_some() {
                call.key.purpose += AGAIN;
                call.is_record = true;
                call.max_tokens = Some(call.max_tokens.unwrap_or(RECORD_TOKENS).min(RECORD_TOKENS));
                call.messages.push(Message::new("assistant", text));
                call.messages.push(Message::new("user", reask.as_str()));
                again.push((place, call));
            }
        }
        let (places, calls): (Vec<usize>, Vec<Call>) = again.into_iter().unzip();
        for (place, record) in places.into_iter().zip(self.ask_once(calls, read)?) {
            if !matches!(record.call.parse, Parse::Unread | Parse::Refused) {
                asked[place] = record;
            }
        }
        Ok(())
    }
}
