//! What a system's file must hold, told before anything is asked: else something other than it says would be asked, or nothing.

use super::PAGE;
use super::fault::Fault;
use super::schema::Is::{Agreed, Answer, Correction, Flag, Reason, Sentence, SentenceId};
use super::schema::{FieldOf, Is, ReplyKind, Stage, SystemFile, Text, When, YES_NO};
use crate::data::ItemKind;
use crate::prompts::placeholders;
use crate::systems::reading::record::plain_key;
use crate::systems::settings::spelling;

/// What prompts may quote of their item and of what was said of it.
const OF_NOTE: &[&str] =
    &["note", "text", "id", "sentence", "agent", "said", "own", "others", "word", "passages"];
const OF_QUESTION: &[&str] = &["question", "options", "said", "own", "others", "word", "agent"];
/// As many of these texts of questions may quote, beside stages.
const OF_TEXT: usize = 6;
/// What shows an exemplar.
const OF_EXAMPLE: &[&str] = &["number", "note", "reason", "verdict", "answer", "wrong", "right"];
/// A prompt that quotes one of these, or a stage, need not quote its item.
const OF_OTHERS: &[&str] = &["said", "own", "others", "text", "sentence"];

type Checked = Result<(), Fault>;

/// Refuses at a key, where it is wrong.
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
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn check(&self) -> Checked {
        self.defaults().map_err(|error| Fault::under("settings", &error.into(), PAGE))?;
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        for (name, told) in &self.texts {
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
                let is_taken =
                    names[..place].contains(&names[place]) || self.texts.contains_key(&stage.name);
                refuse(is_taken, "name", "another stage or text has this name")
                    .and_then(|()| self.check_group(place))
                    .and_then(|()| self.check_stage(stage))
                    .and_then(|()| self.check_prompts(stage, &names[..before]))
                    .map_err(|fault| fault.within("stage", &stage.name))?;
            }
        }
        let is_note = self.takes == ItemKind::Notes;
        let decides = |stage: &Stage| match stage.reply {
            ReplyKind::Fields | ReplyKind::Medec if is_note => true,
            _ => stage.answers(),
        };
        refuse(!self.stages.iter().any(decides), "stage", "none gives an answer")
    }

    fn known(&self) -> &'static [&'static str] {
        if self.takes == ItemKind::Notes { OF_NOTE } else { OF_QUESTION }
    }

    fn refuse_name(&self, key: &str, name: &str) -> Checked {
        let can_be = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        let is_taken = self.known().contains(&name) || name.is_empty() || !name.chars().all(can_be);
        refuse(is_taken, key, "it cannot have this name")
    }

    fn check_text(&self, name: &str, told: &Text, stages: &[&str]) -> Checked {
        self.refuse_name(name, name)?;
        let own: Vec<&str> = match self.takes {
            ItemKind::Notes => Vec::new(),
            ItemKind::Questions => [&OF_QUESTION[..OF_TEXT], stages].concat(),
        };
        for text in told.texts() {
            refuse_unknown(name, text, &own)?;
        }
        let Text::By { by, words } = told else { return Ok(()) };
        let choice: Vec<String> =
            self.words(by).unwrap_or_default().into_iter().map(spelling).collect();
        let is_word = |word: &String| choice.contains(&word.replace(YES_NO, ""));
        let is_whole = choice.iter().all(|word| words.contains_key(word));
        let is_wrong = choice.is_empty() || !is_whole || !words.keys().all(is_word);
        let problem = "it needs `by`, a choice of [settings], and a text for each word of that";
        refuse(is_wrong, name, problem)
    }

    /// Rounds of several stages lie neither in others nor beside them.
    fn check_group(&self, last: usize) -> Checked {
        let Some(from) = &self.stages[last].from else { return Ok(()) };
        let first = self.stages[..=last].iter().position(|stage| stage.name == *from);
        refuse(first.is_none(), "from", "no such stage comes before")?;
        let mut inside = self.stages[first.unwrap_or(last)..last].iter();
        let is_round = inside.any(|stage| stage.rounds > 1 || stage.from.is_some());
        refuse(is_round, "from", "a stage between has rounds of its own")
    }

    fn check_stage(&self, stage: &Stage) -> Checked {
        let is_note = self.takes == ItemKind::Notes;
        self.refuse_name("name", &stage.name)?;
        let is_unknown = |agent: &String| !self.agents.contains(agent);
        refuse(stage.agents.iter().any(is_unknown), "agents", "there is no such agent")?;
        let other = format!("it is not of {}", self.takes);
        let is_other = stage.when != When::Always && is_note == (stage.when == When::Disagree);
        refuse(is_other, "when", &other)?;
        refuse(stage.search && !is_note, "search", &other)?;
        let is_choice = |(choice, word): (&String, &String)| {
            let mut words = self.words(choice).into_iter().flatten();
            words.any(|one| spelling(one) == *word)
        };
        let is_lost = !stage.only.iter().all(is_choice);
        refuse(is_lost, "only", "no choice of [settings] has this word")?;
        let is_far = !(0.0..=2.0).contains(&stage.temperature.unwrap_or(0.0));
        refuse(is_far, "temperature", "it is from 0 to 2")?;
        let (can, needs): (&[Is], &[Is]) = match (stage.reply, is_note) {
            (ReplyKind::Fields, false) => (&[Reason, Answer, Agreed], &[Answer]),
            (ReplyKind::Fields, true) => {
                (&[Reason, Flag, SentenceId, Sentence, Correction], &[Flag, SentenceId, Correction])
            }
            (ReplyKind::Words, _) => (&[Is::Text], &[Is::Text]),
            _ => (&[], &[]),
        };
        let has = |all: &[Is]| stage.fields.iter().any(|field| all.contains(&field.is));
        let is_wrong = stage.fields.iter().any(|field| !can.contains(&field.is))
            || !needs.is_empty() && !has(needs)
            || stage.reply == ReplyKind::Letter && is_note
            || stage.reply == ReplyKind::Medec && !is_note;
        refuse(is_wrong, "reply", "its fields do not make it, or it is of other items")?;
        for (place, field) in stage.fields.iter().enumerate() {
            // Keys that replies are read by without regard to case and the like.
            let is_same =
                |one: &FieldOf| one.is == field.is || plain_key(&one.key) == plain_key(&field.key);
            let is_twice = stage.fields[..place].iter().any(is_same);
            refuse(is_twice, "fields", "two of them have one key or one meaning")?;
            let words = if matches!(field.is, Flag | Agreed) { 2 } else { 0 };
            let problem = "a flag, or whether one agrees, has two words, that for no first";
            refuse(field.words.len() != words, "fields", problem)?;
        }
        let is_ranked = is_note && self.settings.contains_key("choice");
        let problem = "they are notes, ranked as the setting `choice` says";
        refuse(stage.shows() && !is_ranked, "exemplars", problem)
    }

    fn check_prompts(&self, stage: &Stage, before: &[&str]) -> Checked {
        let examples: &[&str] =
            if stage.example.is_empty() { &[] } else { &["examples", "reasons"] };
        let names = self.texts.keys().map(String::as_str);
        let known = self.known().iter().chain(examples).chain(before).copied().chain(names);
        let is_there = |name: &&str| *name != "passages" || stage.search;
        let known: Vec<&str> = known.filter(is_there).collect();
        refuse_unknown("system", &stage.system, &known)?;
        refuse_unknown("user", &stage.user, &known)?;
        refuse_unknown("example", &stage.example, OF_EXAMPLE)?;
        // With the texts that it quotes.
        let texts = placeholders(&stage.user).filter_map(|name| self.texts.get(name));
        let texts = texts.flat_map(|told| told.texts()).flat_map(|text| placeholders(text));
        let quoted: Vec<&str> = placeholders(&stage.user).chain(texts).collect();
        let mut others = OF_OTHERS.iter().chain(before);
        let needs: &[&str] = match self.takes {
            _ if stage.search || others.any(|name| quoted.contains(name)) => &[],
            ItemKind::Questions if stage.answers() => &["question", "options"],
            ItemKind::Questions => &["question"],
            ItemKind::Notes => &["note"],
        };
        let needs = needs.iter().chain(examples.first()).chain(stage.search.then_some(&"passages"));
        let lost = needs.copied().find(|name| !quoted.contains(name));
        let problem = format!("the prompt does not contain {{{}}}", lost.unwrap_or_default());
        refuse(lost.is_some(), "user", &problem)
    }
}
