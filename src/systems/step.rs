//! One kind of call of a protocol: what it is to the item, and what its text looks like; and the templates that it fills.

use super::case::{Ask, messages};
use super::decoding::Shape;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{Message, Stage};

/// What the calls of a step have in common.
pub struct Step {
    pub stage: Stage,
    pub round: u32,
    pub purpose: &'static str,
    pub shape: Shape,
}

impl Step {
    /// The call that `agent`, on the seat `member`, makes in this step.
    pub fn ask(&self, member: usize, agent: impl Into<String>, messages: Vec<Message>) -> Ask {
        Ask {
            member,
            agent: agent.into(),
            stage: self.stage,
            round: self.round,
            purpose: self.purpose,
            sample: 0,
            messages,
            grammar: self.shape.grammar.clone(),
            max_tokens: self.shape.max_tokens,
        }
    }
}

/// What the system says, and the user, with placeholders.
#[derive(Clone, Debug)]
pub struct Templates {
    /// Empty where the system says nothing.
    system: String,
    user: String,
}

impl Templates {
    /// The prompts `NAME-system.txt` and `NAME-user.txt`, with the placeholders that each must have.
    ///
    /// # Errors
    /// An overridden prompt that lost one of them.
    pub fn new(
        prompts: &PromptSet,
        name: &str,
        system: &[&str],
        user: &[&str],
    ) -> Result<Templates, PromptError> {
        let alone = Templates::user(prompts, name, user)?;
        let system = prompts.get(&format!("{name}-system.txt"), system)?;
        Ok(Templates { system: system.to_owned(), ..alone })
    }

    /// `NAME-user.txt` alone.
    ///
    /// # Errors
    /// As [`Templates::new`].
    pub fn user(
        prompts: &PromptSet,
        name: &str,
        placeholders: &[&str],
    ) -> Result<Templates, PromptError> {
        let user = prompts.get(&format!("{name}-user.txt"), placeholders)?;
        Ok(Templates { system: String::new(), user: user.to_owned() })
    }

    /// The messages, with both templates filled.
    pub fn fill(&self, values: &[(&str, &str)]) -> Vec<Message> {
        messages(&fill(&self.system, values), fill(&self.user, values))
    }
}
