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
pub struct Prompts<'a>(pub Vec<Prompt<'a>>);

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
}
