//! Reading a reply: what its system's reader makes of it, and what a refusal, an echo of the prompt or a letter of no option makes of that.

use super::{Case, Parsed};
use crate::data::Item;
use crate::record::{FinishReason, Message, Parse, Reply};
use crate::systems::reading::answer::contradicts_itself;
use crate::systems::reading::correction::is_cut_off;
use crate::systems::reading::echo::is_echo;
use crate::systems::reading::refuses;

impl<T> Case<'_, T> {
    /// Parses a reply. A value has no answer where the model refused or gave a letter that the item does not have, which the record keeps. A
    /// refusal to work on a note, and what is no record and repeats its prompt, are parsed as empty replies, so that their words judge nothing. A
    /// correction that was cut off is none. The value comes as the call's log line has it, too.
    pub(super) fn read<R: Parsed>(
        &self,
        messages: &[Message],
        text: &str,
        finish_reason: FinishReason,
        read: impl Fn(&str, FinishReason) -> (R, Parse),
    ) -> (R, Reply, Parse) {
        let is_cut = finish_reason == FinishReason::Length;
        let question = self.task.item.question();
        // A text without a letter or digit that is no option counts as unread, whatever a reader made of it.
        let is_blank = !text.chars().any(char::is_alphanumeric);
        let heard =
            if question.is_none() && finish_reason == FinishReason::Refusal { "" } else { text };
        let (mut value, mut parse) = read(heard, finish_reason);
        if parse == Parse::Fallback && is_echo(text, messages, &self.own.borrow()) {
            (value, parse) = (read("", finish_reason).0, Parse::Unread);
        } else {
            self.own.borrow_mut().push(text.to_owned());
        }
        if let (Item::Note(note), Some(correction)) = (self.task.item, value.correction()) {
            let is_last = |said: &str| is_cut && text.trim_end().ends_with(said);
            correction.take_if(|said| is_last(said) || is_cut_off(said, note));
        }
        let given = value.answer().cloned().unwrap_or_default();
        let letter = question.zip(given.chars().next());
        let is_other = letter.is_some_and(|(of, letter)| of.letters().all(|one| one != letter));
        let is_bare = matches!(given.as_str(), "" | "I") && question.is_some();
        let may_refuse = match parse {
            Parse::Unread => is_bare || question.is_none(),
            parse => is_bare && parse == Parse::Fallback,
        };
        let is_refused = finish_reason == FinishReason::Refusal || may_refuse && refuses(text);
        if (is_refused || is_other)
            && let Some(answer) = value.answer()
        {
            answer.clear();
        }
        let mut record = Reply::of(&value);
        let parse = match is_refused {
            true => Parse::Refused,
            false if is_other => {
                record.mark_not_an_option(given);
                Parse::Unread
            }
            false if is_blank && given.is_empty() => Parse::Unread,
            // What was cut off is not all that was asked for.
            false if parse == Parse::Ok && is_cut => Parse::Repaired,
            false => parse,
        };
        if let (Parse::Unread | Parse::Refused, Some(name)) = (parse, value.assumed()) {
            record.set_apart(name);
        }
        if let Some(question) = question
            && value.answer().is_some_and(|answer| answer.is_empty())
            && parse == Parse::Unread
            && contradicts_itself(text, &question.options)
        {
            record.mark_contradiction();
        }
        (value, record, parse)
    }
}
