//! The prompts of a run: one example for each agent and purpose.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::record::CallLine;

/// What an agent is asked for a purpose.
#[derive(Serialize)]
pub struct Prompt<'a> {
    number: usize,
    /// The first such call, whose messages are shown.
    call: &'a CallLine,
    /// Calls of this agent for this purpose.
    calls: usize,
    /// How many different system messages these calls had; there is one for each role that a recruiter makes up.
    variants: usize,
    #[serde(skip)]
    systems: BTreeSet<Vec<&'a str>>,
}

/// Collects prompts in the order in which they first appear.
#[derive(Default)]
pub struct Prompts<'a>(Vec<Prompt<'a>>);

impl<'a> Prompts<'a> {
    /// Counts a call and gives the number of its prompt.
    pub fn number(&mut self, call: &'a CallLine) -> usize {
        let key = |call: &'a CallLine| [&call.agent, &call.purpose, &call.backbone];
        let place = self.0.iter().position(|one| key(one.call) == key(call));
        let place = place.unwrap_or(self.0.len());
        if place == self.0.len() {
            let (number, systems) = (place + 1, BTreeSet::new());
            self.0.push(Prompt { number, call, calls: 0, variants: 0, systems });
        }
        let prompt = &mut self.0[place];
        let system = call.messages.iter().filter(|message| message.role == "system");
        prompt.systems.insert(system.map(|message| message.content.as_str()).collect());
        prompt.variants = prompt.systems.len();
        prompt.calls += 1;
        prompt.number
    }

    pub fn into_vec(self) -> Vec<Prompt<'a>> {
        self.0
    }
}

/// The last user message of a call.
pub fn user_message(call: &CallLine) -> Option<&str> {
    let user = call.messages.iter().rfind(|message| message.role == "user");
    user.map(|message| message.content.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::questions as debates;

    #[test]
    fn a_prompt_counts_once_per_agent_and_purpose() {
        let (_, _, calls) = debates::records();
        let mut other = calls[0].clone();
        other.messages[0].content.push('!');
        let mut prompts = Prompts::default();
        let numbers: Vec<usize> = calls.iter().map(|call| prompts.number(call)).collect();
        assert_eq!(prompts.number(&other), numbers[0]);
        let found = prompts.into_vec();
        assert_eq!(found.len(), 6, "three members, initial and debate");
        assert_eq!(found.iter().map(|p| p.calls).sum::<usize>(), calls.len() + 1);
        assert_eq!(numbers[0], found[0].number);
        assert_eq!((found[0].variants, found[1].variants), (2, 1));
    }
}
