//! What a system's file must hold, told before anything is asked: else something other than it says would be asked, or nothing.

use super::PAGE;
use super::schema::{Is, StageEntry, SystemFile, When};
use crate::data::ItemKind;
use crate::diagnosis::Failure;
use crate::prompts::placeholders;

/// What prompts may quote of their item and of what was said of it, as `ask.rs` fills it in.
pub(super) const OF_NOTE: [&str; 6] = ["note", "text", "id", "sentence", "agent", "said"];
pub(super) const OF_QUESTION: [&str; 4] = ["question", "options", "agent", "said"];
/// Of both, what by itself shows nothing of an item.
const NOT_SHOWN: [&str; 3] = ["id", "options", "agent"];
const OF_EXAMPLE: [&str; 7] = ["number", "note", "reason", "verdict", "answer", "wrong", "right"];

type Checked = Result<(), Failure>;

fn says() -> String {
    format!("docs/{PAGE} says what it may be")
}

fn refuse(is_wrong: bool, key: &str, problem: &str) -> Checked {
    match is_wrong {
        true => Err(Failure::usage(format!("{key}: {problem}"), &says())),
        false => Ok(()),
    }
}

/// Refuses names in braces that stand for nothing here.
fn refuse_unknown(key: &str, text: &str, known: &[&str]) -> Checked {
    let Some(other) = placeholders(text).find(|name| !known.contains(name)) else { return Ok(()) };
    let hint = format!("what can be quoted: {}", known.join(", "));
    Err(Failure::usage(format!("{key}: nothing is named {{{other}}} here"), &hint))
}

impl SystemFile {
    /// Names and what they refer to, and the prompts, whose texts are in place.
    pub(super) fn check(&self) -> Checked {
        self.defaults().map_err(|error| {
            Failure::usage(format!("settings: {error}"), &error.hint().unwrap_or_else(says))
        })?;
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        let taken = "prompts quote something else by this name";
        // What a text of a question quotes may be empty yet, and a note's quotes nothing.
        let quoted = match self.takes {
            ItemKind::Notes => Vec::new(),
            ItemKind::Questions => [self.known(), &names].concat(),
        };
        for (name, text) in &self.texts {
            refuse(self.known().contains(&name.as_str()), name, taken)?;
            refuse_unknown(name, text, &quoted)?;
        }
        refuse(self.agents.is_empty(), "agents", "at least one is needed")?;
        for (place, agent) in self.agents.iter().enumerate() {
            // Calls are told apart by their agents' names.
            let is_twice = self.agents[..place].contains(agent);
            refuse(is_twice, "agents", &format!("{agent} is named twice"))?;
        }
        for (place, stage) in self.stages.iter().enumerate() {
            // A later round quotes what the one before said.
            let before = &names[..place + usize::from(stage.rounds > 1)];
            let others = [&names[..place], self.known()].concat();
            let is_taken = others.contains(&names[place]) || self.texts.contains_key(&stage.name);
            refuse(is_taken, "name", taken)
                .and_then(|()| self.check_stage(stage))
                .and_then(|()| self.check_prompts(stage, before))
                .map_err(|error| error.about(&format!("stage {}", stage.name)))?;
        }
        Ok(())
    }

    fn known(&self) -> &'static [&'static str] {
        if self.takes == ItemKind::Notes { &OF_NOTE } else { &OF_QUESTION }
    }

    fn check_stage(&self, stage: &StageEntry) -> Checked {
        let is_note = self.takes == ItemKind::Notes;
        let is_unknown = |agent: &String| !self.agents.contains(agent);
        refuse(stage.agents.iter().any(is_unknown), "agents", "there is no such agent")?;
        let is_far = !(0.0..=2.0).contains(&stage.temperature.unwrap_or(0.0));
        refuse(is_far, "temperature", "must be from 0 to 2")?;
        let is_other = stage.when != When::Always && is_note == (stage.when == When::Disagree);
        refuse(is_other, "when", &format!("it is not for {}", self.takes))?;
        for field in &stage.fields {
            // Nothing said would be one of them.
            let words = if field.is == Is::Flag { 2 } else { 0 };
            let problem = "a flag has two words, that for no error first";
            refuse(field.words.len() != words, "fields", problem)?;
        }
        let says = if is_note { stage.judges() } else { stage.answers() };
        refuse(!says, "reply", &format!("it says nothing of {}", self.takes))?;
        let is_ranked = is_note && self.settings.contains_key("choice");
        let is_shown = is_ranked && !stage.example.is_empty();
        let problem = "they are notes, ranked as the setting `choice` says and shown by `example`";
        refuse(stage.exemplars.is_some() && !is_shown, "exemplars", problem)
    }

    /// Names in braces that stand for nothing here would be sent as they are.
    fn check_prompts(&self, stage: &StageEntry, before: &[&str]) -> Checked {
        let shown: &[&str] = match stage.exemplars {
            Some(_) => &["examples", "reasons"],
            None => &[],
        };
        let texts: Vec<&str> = self.texts.keys().map(String::as_str).collect();
        let known = [self.known(), shown, before, &texts].concat();
        refuse_unknown("system", &stage.system, &known)?;
        refuse_unknown("user", &stage.user, &known)?;
        refuse_unknown("example", &stage.example, &OF_EXAMPLE)?;
        // A model that is shown no item answers all the same.
        let is_item = |name: &str| self.known().contains(&name) && !NOT_SHOWN.contains(&name);
        let shows =
            |text: &str| placeholders(text).any(|name| is_item(name) || before.contains(&name));
        let mut texts = placeholders(&stage.user).filter_map(|name| self.texts.get(name));
        let is_shown = shows(&stage.user) || texts.any(|text| shows(text));
        refuse(!is_shown, "user", "it shows nothing of the item, nor what was said of it")
    }
}
