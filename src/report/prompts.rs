//! The prompts of a run, each distinct one once: by member, purpose and system message.

use serde::Serialize;

use super::panel::Panel;
use crate::run::records::{CallRecord, Message};

/// A prompt, shown by the first call that was given it.
#[derive(Serialize)]
pub struct Prompt<'a> {
    number: usize,
    agent: &'a str,
    purpose: &'a str,
    /// Calls whose member, purpose and system message are these.
    calls: usize,
    /// The item of the call whose messages are shown.
    item: &'a str,
    messages: &'a [Message],
    #[serde(skip)]
    seat: usize,
}

/// Collects prompts in the order in which they first appear.
pub struct Prompts<'a> {
    panel: Panel<'a>,
    found: Vec<Prompt<'a>>,
}

impl<'a> Prompts<'a> {
    pub fn new(panel: Panel<'a>) -> Prompts<'a> {
        Prompts {
            panel,
            found: Vec::new(),
        }
    }

    /// Counts a call in and returns the number of its prompt.
    pub fn number(&mut self, call: &'a CallRecord) -> usize {
        let seat = self.panel.seat_of(call);
        let same = |prompt: &&mut Prompt| {
            prompt.seat == seat
                && prompt.agent == call.agent
                && prompt.purpose == call.purpose
                && system(prompt.messages).eq(system(&call.messages))
        };
        if let Some(prompt) = self.found.iter_mut().find(same) {
            prompt.calls += 1;
            return prompt.number;
        }
        let number = self.found.len() + 1;
        self.found.push(Prompt {
            number,
            agent: &call.agent,
            purpose: &call.purpose,
            calls: 1,
            item: &call.item,
            messages: &call.messages,
            seat,
        });
        number
    }

    pub fn into_vec(self) -> Vec<Prompt<'a>> {
        self.found
    }
}

fn system(messages: &[Message]) -> impl Iterator<Item = &str> {
    let system = messages.iter().filter(|message| message.role == "system");
    system.map(|message| message.content.as_str())
}

/// What the user was given in a call: the last message that is not the system's.
pub fn user_message(call: &CallRecord) -> Option<&str> {
    let user = call.messages.iter().rfind(|message| message.role == "user");
    user.map(|message| message.content.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::debates;

    #[test]
    fn a_prompt_counts_once_per_member_purpose_and_system_message() {
        let (plan, _, calls) = debates::records();
        let mut prompts = Prompts::new(Panel::new(&plan.panel));
        let numbers: Vec<usize> = calls.iter().map(|call| prompts.number(call)).collect();
        let found = prompts.into_vec();
        assert_eq!(found.len(), 6, "three members, initial and debate");
        assert_eq!(found.iter().map(|p| p.calls).sum::<usize>(), calls.len());
        assert_eq!(numbers[0], found[0].number);
        let mut other = calls[0].clone();
        other.messages[0].content.push('!');
        let mut prompts = Prompts::new(Panel::new(&plan.panel));
        assert_ne!(prompts.number(&calls[0]), prompts.number(&other));
    }
}
