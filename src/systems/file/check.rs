//! What a system's file must hold, and what it may not, told before anything is asked.

use super::PAGE;
use super::fault::Fault;
use super::schema::Is::{
    Agreed, Answer, Confidence, Correction, Flag, Reason, Sentence, SentenceId,
};
use super::schema::{BY, Is, Query, ReplyKind, Stage, SystemFile, Text, Vote, When, YES_NO};
use crate::data::ItemKind;
use crate::prompts::placeholders;
use crate::systems::reading::record::plain_key;
use crate::systems::settings::spelling;

/// What prompts may quote of their item and of what was said of it.
const OF_NOTE: &[&str] =
    &["note", "text", "id", "sentence", "agent", "said", "own", "others", "word", "passages"];
const OF_QUESTION: &[&str] =
    &["question", "options", "said", "own", "others", "word", "agent", "passages"];
/// What texts of questions may quote, beside stages, and what shows an exemplar.
const OF_QUESTIONS_TEXT: &[&str] = &["question", "options", "said", "own", "others", "word"];
const OF_EXAMPLE: &[&str] = &["number", "note", "reason", "verdict", "answer", "wrong", "right"];

/// Agents, stages, and values that a prompt quotes, at most.
const MOST: usize = 100;

type Checked = Result<(), Fault>;

/// Refuses at a key, where it is wrong.
fn refuse(is_wrong: bool, key: &str, problem: &str, hint: &str) -> Checked {
    if is_wrong { Err(Fault::new(key, problem, hint)) } else { Ok(()) }
}

/// Refuses names in braces that stand for nothing here.
fn refuse_unknown(key: &str, text: &str, known: &[&str]) -> Checked {
    let Some(other) = placeholders(text).find(|name| !known.contains(name)) else { return Ok(()) };
    let hint = match known {
        [] => "a text of notes quotes nothing".to_owned(),
        known => format!("what can be quoted is {}", known.join(", ")),
    };
    Err(Fault::new(key, format!("nothing is named {{{other}}} here"), hint))
}

impl SystemFile {
    /// Names and what they refer to, and the prompts, whose texts are in place.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn check(&self) -> Checked {
        self.defaults().map_err(|error| Fault::under("settings", &error.into(), PAGE))?;
        let prompts = self.stages.iter().flat_map(|stage| [&stage.system, &stage.user]);
        let quoted: Vec<&str> = prompts.flat_map(|prompt| placeholders(prompt)).collect();
        for (name, told) in &self.texts {
            self.check_text(name, told)?;
            let is_lost = !quoted.contains(&name.as_str());
            refuse(is_lost, name, "no prompt quotes it", "write its name in braces in one")?;
        }
        self.check_agents()?;
        let is_far = self.stages.len() > MOST;
        refuse(is_far, "stage", "there are more than 100 of them", "leave some out")?;
        let names: Vec<&str> = self.stages.iter().map(|stage| stage.name.as_str()).collect();
        for (place, stage) in self.stages.iter().enumerate() {
            let fault = |fault: Fault| fault.within("stage", &stage.name);
            let name = stage.name.as_str();
            let is_taken = names[..place].contains(&name) || self.texts.contains_key(name);
            refuse(is_taken, "name", "another stage or text has this name", "take another")
                .map_err(fault)?;
            self.check_group(place).map_err(fault)?;
            self.check_stage(stage).map_err(fault)?;
            self.refuse_idle_keys(place).map_err(fault)?;
        }
        self.refuse_idle_settings()?;
        for (group, rounds) in self.groups() {
            for place in group.clone() {
                // Later rounds quote what earlier ones said.
                let before = if rounds > 1 { group.end } else { place };
                let stage = &self.stages[place];
                let fault = |fault: Fault| fault.within("stage", &stage.name);
                self.check_prompts(stage, &names[..before]).map_err(fault)?;
                let others = (0..before).filter(|other| *other != place);
                let others: Vec<&Stage> = others.map(|other| &self.stages[other]).collect();
                self.refuse_idle_when(stage, &others).map_err(fault)?;
            }
        }
        let is_note = self.takes == ItemKind::Notes;
        let decides = |stage: &Stage| match stage.reply {
            ReplyKind::Fields | ReplyKind::Medec if is_note => true,
            _ => stage.answers(),
        };
        let hint = "let a stage have reply = \"letter\" or fields";
        refuse(!self.stages.iter().any(decides), "stage", "none gives an answer", hint)
    }

    /// Calls are told apart by their agents' names.
    fn check_agents(&self) -> Checked {
        let is_far = self.agents.is_empty() || self.agents.len() > MOST;
        refuse(is_far, "agents", "there must be 1 to 100 of them", "name them in a list")?;
        let can_be = |c: char| c.is_alphanumeric() || "-_".contains(c);
        for (place, agent) in self.agents.iter().enumerate() {
            let is_name = !agent.is_empty() && agent.chars().all(can_be);
            let problem = format!("no agent can be named {agent:?}");
            refuse(!is_name, "agents", &problem, "use letters, digits, - and _")?;
            let is_twice = self.agents[..place].contains(agent);
            let problem = format!("{agent} is named twice");
            refuse(is_twice, "agents", &problem, "give each a name of its own")?;
        }
        Ok(())
    }

    fn known(&self) -> &'static [&'static str] {
        if self.takes == ItemKind::Notes { OF_NOTE } else { OF_QUESTION }
    }

    fn refuse_name(&self, key: &str, name: &str) -> Checked {
        let can_be = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        let is_taken = self.known().contains(&name) || name.is_empty() || !name.chars().all(can_be);
        refuse(is_taken, key, "it cannot have this name", "take another, of small letters")
    }

    fn check_text(&self, name: &str, told: &Text) -> Checked {
        self.refuse_name(name, name)?;
        let stages = self.stages.iter().map(|stage| stage.name.as_str());
        let own: Vec<&str> = match self.takes {
            ItemKind::Notes => Vec::new(),
            ItemKind::Questions => OF_QUESTIONS_TEXT.iter().copied().chain(stages).collect(),
        };
        for text in told.texts() {
            refuse_unknown(name, text, &own)?;
        }
        let Text::By(words) = told else { return Ok(()) };
        let choice = words.get(BY).and_then(|by| self.words(by)).unwrap_or_default();
        let choice: Vec<String> = choice.into_iter().map(spelling).collect();
        let is_word = |word: &String| word == BY || choice.contains(&word.replace(YES_NO, ""));
        let is_whole = choice.iter().all(|word| words.contains_key(word));
        let is_wrong = choice.is_empty() || !is_whole || !words.keys().all(is_word);
        let problem = "it needs `by`, a choice of [settings], and a text for each word of that";
        refuse(is_wrong, name, problem, &format!("the words are {}", choice.join(", ")))
    }

    /// Rounds of several stages lie neither in others nor beside them.
    fn check_group(&self, last: usize) -> Checked {
        let Some(from) = &self.stages[last].from else { return Ok(()) };
        let first = self.stages[..=last].iter().position(|stage| stage.name == *from);
        let hint = "name this stage or one before it";
        refuse(first.is_none(), "from", "no such stage comes before", hint)?;
        let mut inside = self.stages[first.unwrap_or(last)..last].iter();
        let is_round = inside.any(|stage| stage.rounds > 1 || stage.from.is_some());
        let hint = "let only the last of them have `rounds` and `from`";
        refuse(is_round, "from", "a stage between has rounds of its own", hint)
    }

    fn check_stage(&self, stage: &Stage) -> Checked {
        let is_note = self.takes == ItemKind::Notes;
        self.refuse_name("name", &stage.name)?;
        // Members have numbers behind their names.
        let has_members = self.settings.contains_key("members");
        let is_unknown =
            stage.agents.iter().any(|agent| has_members || !self.agents.contains(agent));
        let hint = format!("the agents are {}", self.agents.join(", "));
        refuse(is_unknown, "agents", "there is no such agent", &hint)?;
        let is_other = stage.when != When::Always && is_note == (stage.when == When::Disagree);
        let hint = "always; of questions: disagree; of notes: error, no-error, sentence, other-sentence, suspected";
        refuse(is_other, "when", &format!("it is not of {}", self.takes), hint)?;
        let is_choice = |(choice, word): (&String, &String)| {
            let words = self.words(choice).unwrap_or_default();
            words.into_iter().any(|one| spelling(one) == *word)
        };
        let hint = "write only = { CHOICE = \"WORD\" } of [settings]";
        refuse(!stage.only.iter().all(is_choice), "only", "no choice has this word", hint)?;
        let is_lost = stage.search.is_some_and(|query| is_note == (query == Query::Question));
        let hint = "questions: question; notes: words";
        refuse(is_lost, "search", &format!("it is not of {}", self.takes), hint)?;
        let counts = [
            ("rounds", stage.rounds),
            ("tries", stage.tries),
            ("most", stage.most),
            ("passages", stage.passages),
        ];
        for (key, count) in counts {
            let is_far = !(1..=100).contains(&count);
            refuse(is_far, key, "a number is out of range", "it is from 1 to 100")?;
        }
        let is_far = !(0.0..=2.0).contains(&stage.temperature.unwrap_or(0.0));
        refuse(is_far, "temperature", "a number is out of range", "it is from 0 to 2")?;
        refuse(
            stage.drawn_from == Some(0),
            "drawn_from",
            "a number is out of range",
            "it is 1 or more",
        )?;
        let (can, needs): (&[Is], &[Is]) = match (stage.reply, is_note) {
            (ReplyKind::Fields, false) => {
                (&[Reason, Answer, Confidence, Agreed], &[Answer, Agreed])
            }
            (ReplyKind::Fields, true) => {
                (&[Reason, Flag, SentenceId, Sentence, Correction], &[Flag, SentenceId, Correction])
            }
            (ReplyKind::Words, _) | (ReplyKind::Sentence, true) => (&[Is::Text], &[Is::Text]),
            _ => (&[], &[]),
        };
        let has = |all: &[Is]| stage.fields.iter().any(|field| all.contains(&field.is));
        let is_wrong = stage.fields.iter().any(|field| !can.contains(&field.is))
            || !needs.is_empty() && !has(needs)
            || matches!(stage.reply, ReplyKind::Letter | ReplyKind::LetterAsWritten) && is_note
            || matches!(stage.reply, ReplyKind::Medec | ReplyKind::Sentence) && !is_note;
        let names = can.iter().filter_map(|is| toml::Value::try_from(is).ok()).map(spelling);
        let names: Vec<String> = names.collect();
        let hint = match names.is_empty() {
            true => "it has no fields, and may not be of these items".to_owned(),
            false => format!("its fields can be {}", names.join(", ")),
        };
        refuse(is_wrong, "reply", "its fields do not make it", &hint)?;
        for (place, field) in stage.fields.iter().enumerate() {
            let before = &stage.fields[..place];
            // Keys that replies are read by without regard to case and the like.
            let key = plain_key(&field.key);
            let is_twice = before.iter().any(|one| plain_key(&one.key) == key);
            let problem = format!("two fields have the key {:?}", field.key);
            refuse(is_twice, "fields", &problem, "give each a key of its own")?;
            let is_twice = before.iter().any(|one| one.is == field.is);
            let meaning = toml::Value::try_from(field.is).map(spelling).unwrap_or_default();
            let problem = format!("two fields are the {meaning}");
            refuse(is_twice, "fields", &problem, "a reply has each meaning once")?;
        }
        let words = |is: Is| if matches!(is, Flag | Agreed) { 2 } else { 0 };
        let is_bare = stage.fields.iter().any(|field| field.words.len() != words(field.is));
        let hint = "words = [\"no\", \"yes\"], and none for any other field";
        let problem = "a flag, or whether one agrees, has two words, that for no first";
        refuse(is_bare, "fields", problem, hint)?;
        let is_unsaid = stage.vote == Vote::Confidence && !has(&[Confidence]);
        refuse(is_unsaid, "vote", "no field states a confidence", "add one")?;
        let hint = "write examples of questions into the prompt";
        refuse(stage.shows() && !is_note, "exemplars", "they are notes", hint)?;
        let is_unsaid = stage.shows() && !self.settings.contains_key("choice");
        let hint =
            "write choice = \"tfidf\" in [settings]: random, tfidf, embedding, fixed or sentences";
        refuse(is_unsaid, "exemplars", "nothing says how they are ranked", hint)
    }

    fn check_prompts(&self, stage: &Stage, before: &[&str]) -> Checked {
        let examples: &[&str] =
            if stage.example.is_empty() { &[] } else { &["examples", "reasons"] };
        let names = self.texts.keys().map(String::as_str);
        let known = self.known().iter().chain(examples).chain(before).copied().chain(names);
        let is_there = |name: &&str| *name != "passages" || stage.search.is_some();
        let known: Vec<&str> = known.filter(is_there).collect();
        refuse_unknown("system", &stage.system, &known)?;
        refuse_unknown("user", &stage.user, &known)?;
        refuse_unknown("example", &stage.example, OF_EXAMPLE)?;
        let prompts =
            [("system", &stage.system), ("user", &stage.user), ("example", &stage.example)];
        for (key, prompt) in prompts {
            let is_far = placeholders(prompt).count() > MOST;
            refuse(is_far, key, "it quotes more than 100 values", "quote each once")?;
        }
        let mut user = stage.user.clone();
        // With the texts that it quotes.
        for (name, told) in &self.texts {
            if placeholders(&stage.user).any(|quoted| quoted == name) {
                user.extend(told.texts().into_iter().map(String::as_str));
            }
        }
        let has = |name: &str| placeholders(&user).any(|quoted| quoted == name);
        let needs: &[&str] = match self.takes {
            _ if has("said")
                || has("own")
                || has("others")
                || has("text")
                || stage.search.is_some()
                || has("sentence")
                || before.iter().any(|name| has(name)) =>
            {
                &[]
            }
            ItemKind::Questions if stage.answers() => &["question", "options"],
            ItemKind::Questions => &["question"],
            ItemKind::Notes => &["note"],
        };
        let passages = stage.search.map(|_| &"passages");
        let others = examples.first().into_iter().chain(passages);
        let lost = needs.iter().chain(others).find(|name| !has(name));
        let problem = lost.map(|name| format!("the prompt does not contain {{{name}}}"));
        let hint = "write it where its text belongs";
        refuse(lost.is_some(), "user", &problem.unwrap_or_default(), hint)
    }
}
