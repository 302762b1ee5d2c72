//! What a system's file must hold, told before anything is asked: else something other than it says would be asked, or nothing.

use super::PAGE;
use super::fault::Fault;
use super::schema::{Is, Stage, SystemFile, Text, When, YES_NO};
use crate::data::ItemKind;
use crate::prompts::placeholders;
use crate::systems::settings::spelling;

/// What prompts may quote of their item and of what was said of it.
const OF_NOTE: [&str; 8] = ["note", "text", "id", "sentence", "agent", "said", "own", "others"];
const OF_QUESTION: [&str; 6] = ["question", "options", "agent", "said", "own", "others"];
/// Of both, what by itself shows nothing of an item.
const NOT_SHOWN: [&str; 3] = ["id", "options", "agent"];
const OF_EXAMPLE: [&str; 7] = ["number", "note", "reason", "verdict", "answer", "wrong", "right"];

type Checked = Result<(), Fault>;

fn refuse(is_wrong: bool, key: &str, problem: &str) -> Checked {
    let hint = || format!("docs/{PAGE} says what it may be");
    if is_wrong { Err(Fault::new(key, problem, hint())) } else { Ok(()) }
}

/// Refuses names in braces that stand for nothing here.
fn refuse_unknown(key: &str, text: &str, known: &[&str]) -> Checked {
    let Some(other) = placeholders(text).find(|name| !known.contains(name)) else { return Ok(()) };
    let hint = format!("what can be quoted: {}", known.join(", "));
    Err(Fault::new(key, format!("nothing is named {{{other}}} here"), hint))
}

impl SystemFile {
    /// Names and what they refer to, and the prompts, whose texts are in place.
    pub(super) fn check(&self) -> Checked {
        self.defaults().map_err(|error| Fault::under("settings", &error.into(), PAGE))?;
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        let taken = "prompts quote something else by this name";
        for (name, told) in &self.texts {
            refuse(self.known().contains(&name.as_str()), name, taken)?;
            self.check_text(name, told, &names)?;
        }
        refuse(self.agents.is_empty(), "agents", "there is none")?;
        for (place, agent) in self.agents.iter().enumerate() {
            // Calls are told apart by their agents' names.
            let is_twice = self.agents[..place].contains(agent);
            refuse(is_twice, "agents", &format!("{agent} is named twice"))?;
        }
        for (group, rounds) in self.groups() {
            for place in group.clone() {
                let stage = &self.stages[place];
                // Later rounds quote what earlier ones said.
                let before = if rounds > 1 { group.end } else { place };
                let others = [&names[..place], self.known()].concat();
                let is_taken =
                    others.contains(&names[place]) || self.texts.contains_key(&stage.name);
                refuse(is_taken, "name", taken)
                    .and_then(|()| self.check_stage(place))
                    .and_then(|()| self.check_prompts(stage, &names[..before]))
                    .map_err(|fault| fault.within("stage", &stage.name))?;
            }
        }
        Ok(())
    }

    fn known(&self) -> &'static [&'static str] {
        if self.takes == ItemKind::Notes { &OF_NOTE } else { &OF_QUESTION }
    }

    fn check_text(&self, name: &str, told: &Text, stages: &[&str]) -> Checked {
        let known = match self.takes {
            ItemKind::Notes => Vec::new(),
            ItemKind::Questions => [self.known(), stages].concat(),
        };
        for text in told.texts() {
            refuse_unknown(name, text, &known)?;
        }
        let Text::By { by, words } = told else { return Ok(()) };
        let choice = self.words(by).unwrap_or_default().iter().cloned().map(spelling);
        let choice: Vec<String> = choice.collect();
        let is_word = |word: &String| choice.contains(&word.replace(YES_NO, ""));
        let is_whole = choice.iter().all(|word| words.contains_key(word));
        let is_wrong = choice.is_empty() || !is_whole || !words.keys().all(is_word);
        let problem = "it needs `by`, a choice of [settings], and a text for each word of that";
        refuse(is_wrong, name, problem)
    }

    fn check_stage(&self, place: usize) -> Checked {
        let stage = &self.stages[place];
        let is_note = self.takes == ItemKind::Notes;
        let is_unknown = |agent: &String| !self.agents.contains(agent);
        refuse(stage.agents.iter().any(is_unknown), "agents", "there is no such agent")?;
        if let Some(from) = &stage.from {
            let first = self.stages[..=place].iter().position(|one| one.name == *from);
            refuse(first.is_none(), "from", "no such stage comes before")?;
            // Rounds of several stages lie neither in others nor beside them.
            let mut inside = self.stages[first.unwrap_or(place)..place].iter();
            let is_round = inside.any(|one| one.rounds > 1 || one.from.is_some());
            refuse(is_round, "from", "a stage between has rounds of its own")?;
        }
        let is_choice = |(choice, word): (&String, &String)| {
            let mut words = self.words(choice).unwrap_or_default().iter().cloned();
            words.any(|one| spelling(one) == *word)
        };
        let is_lost = !stage.only.iter().all(is_choice);
        refuse(is_lost, "only", "no choice of [settings] has this word")?;
        let is_far = !(0.0..=2.0).contains(&stage.temperature.unwrap_or(0.0));
        refuse(is_far, "temperature", "it is from 0 to 2")?;
        let is_other = stage.when != When::Always && is_note == (stage.when == When::Disagree);
        refuse(is_other, "when", &format!("it is not of {}", self.takes))?;
        for field in &stage.fields {
            // Nothing said would be one of them.
            let words = if matches!(field.is, Is::Flag | Is::Agreed) { 2 } else { 0 };
            let problem = "a flag, or whether one agrees, has two words, that for no first";
            refuse(field.words.len() != words, "fields", problem)?;
        }
        let says = if is_note { stage.judges() } else { stage.answers() };
        refuse(!says, "reply", &format!("it says nothing of {}", self.takes))?;
        let is_ranked = is_note && self.settings.contains_key("choice");
        let problem = "they are notes, ranked as the setting `choice` says";
        refuse(stage.shows() && !is_ranked, "exemplars", problem)
    }

    /// Names in braces that stand for nothing here would be sent as they are.
    fn check_prompts(&self, stage: &Stage, before: &[&str]) -> Checked {
        let shown: &[&str] = if stage.example.is_empty() { &[] } else { &["examples", "reasons"] };
        let found: &[&str] = if stage.search { &["passages"] } else { &[] };
        let texts: Vec<&str> = self.texts.keys().map(String::as_str).collect();
        let known = [self.known(), shown, found, before, &texts].concat();
        refuse_unknown("system", &stage.system, &known)?;
        refuse_unknown("user", &stage.user, &known)?;
        refuse_unknown("example", &stage.example, &OF_EXAMPLE)?;
        // A model that is shown no item answers all the same.
        let is_item = |name: &str| self.known().contains(&name) && !NOT_SHOWN.contains(&name);
        let shows =
            |text: &str| placeholders(text).any(|name| is_item(name) || before.contains(&name));
        let texts = placeholders(&stage.user).filter_map(|name| self.texts.get(name));
        let is_shown = shows(&stage.user) || texts.flat_map(Text::texts).any(|text| shows(text));
        refuse(!is_shown, "user", "it shows nothing of the item, nor what was said of it")
    }
}
