//! The keys of a system's file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::ItemKind;
use crate::systems::config::SOLO;
use crate::systems::exemplars::Kinds;
use crate::systems::settings::whole;

/// A system as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemFile {
    /// The file's name and text, and the texts of the prompts beside it.
    #[serde(skip)]
    pub source: SystemText,
    /// Another name in plans and logs.
    pub plan_name: Option<String>,
    pub takes: ItemKind,
    /// The folder below `prompts/` of the built-in prompts that it names.
    #[serde(default)]
    pub prompts: String,
    /// The source after which its prompts were written.
    #[serde(default)]
    pub after: String,
    /// The origin of the examples in its prompts.
    pub examples: Option<String>,
    /// In panel order; each may have a model of its own.
    #[serde(default = "solo")]
    pub agents: Vec<String>,
    /// Which settings it has, each with its default.
    #[serde(default)]
    pub settings: toml::Table,
    /// Texts that prompts quote by their names. One with [`YES_NO`] behind its name stands in its place for questions of yes, no and maybe.
    #[serde(default)]
    pub texts: BTreeMap<String, String>,
    #[serde(rename = "stage")]
    pub stages: Vec<StageEntry>,
}

/// What a system was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemText {
    pub name: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<String, String>,
}

fn solo() -> Vec<String> {
    vec![SOLO.to_owned()]
}

/// The end of the name of a file with a prompt.
pub const PROMPT: &str = ".txt";
pub const YES_NO: &str = "-yes-no";

/// One step: a prompt to some of the agents.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageEntry {
    /// The purpose of its calls in the log; later prompts quote its replies by this name.
    pub name: String,
    #[serde(default)]
    pub when: When,
    /// Those that are asked; empty: all.
    #[serde(default)]
    pub agents: Vec<String>,
    /// How often it is gone through, while its condition holds.
    #[serde(default = "once", deserialize_with = "whole::<1, 100, _, _>")]
    pub rounds: u32,
    /// How often a call is made at most while its reply cannot be read.
    #[serde(default = "once", deserialize_with = "whole::<1, 100, _, _>")]
    pub tries: u32,
    pub temperature: Option<f32>,
    /// The system message: a text, or the name of a `.txt` file.
    #[serde(default)]
    pub system: String,
    pub user: String,
    /// Which exemplars `{examples}` shows.
    pub exemplars: Option<Kinds>,
    /// How it shows one.
    #[serde(default)]
    pub example: String,
    /// How many of the best exemplars are drawn from.
    pub drawn_from: Option<usize>,
    #[serde(default)]
    pub reply: ReplyKind,
    #[serde(default)]
    pub style: Style,
    #[serde(default)]
    pub fields: Vec<FieldOf>,
    #[serde(default)]
    pub gives: Gives,
    #[serde(default)]
    pub vote: Vote,
}

fn once() -> u32 {
    1
}

/// On what a stage depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    #[default]
    Always,
    /// The answers so far are not all the same.
    Disagree,
    /// An error was found in the note.
    Error,
    NoError,
    /// And it is known in which sentence, and the last reply named another one, or none.
    OtherSentence,
}

/// What a reply is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyKind {
    /// The fields that are listed.
    #[default]
    Fields,
    /// The letter of an option.
    Letter,
    /// `CORRECT`, or a sentence's number and the sentence as it should be.
    Medec,
}

/// What a note's outcome takes from a stage; an answer to a question is always taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gives {
    /// Flag, sentence and correction, where they could be read.
    #[default]
    Opinion,
    /// The correction alone, where there is one.
    Correction,
    /// The correction, where it is of the same sentence.
    SameSentence,
}

/// How fields are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    #[default]
    Json,
    /// A line `Label: value` for each field.
    Lines,
}

/// How several replies become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vote {
    /// The most common letter, or pair of flag and sentence; the first of several.
    #[default]
    Majority,
    /// The most common flag and the most common sentence of a note by themselves, 0 on a tie.
    Apart,
}

/// A field of a reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldOf {
    pub key: String,
    pub is: Is,
    /// Of a flag: the word for no error, and the word for one.
    #[serde(default)]
    pub words: Vec<String>,
}

impl FieldOf {
    /// The word for no error, or for one.
    pub fn word(&self, is_wrong: bool) -> &str {
        self.words.get(usize::from(is_wrong)).map_or("", String::as_str)
    }
}

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Is {
    Reason,
    Answer,
    Flag,
    SentenceId,
    Sentence,
    Correction,
}

impl SystemFile {
    /// Where a text stands or the name of its file: the latter alone.
    pub fn named(&mut self) -> impl Iterator<Item = &mut String> {
        let stages = self.stages.iter_mut();
        let stages = stages.flat_map(|one| [&mut one.system, &mut one.user, &mut one.example]);
        let all = stages.chain(self.texts.values_mut());
        all.filter(|one| one.ends_with(PROMPT) && !one.contains(char::is_whitespace))
    }
}
