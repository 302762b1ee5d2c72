//! The keys of a system's file.

use std::collections::BTreeMap;
use std::ops::Range;

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
    /// Which settings it has, each with its default; a list is a choice of the file's own, and its first word the default.
    #[serde(default)]
    pub settings: toml::Table,
    /// Texts that prompts quote by their names.
    #[serde(default)]
    pub texts: BTreeMap<String, Text>,
    #[serde(rename = "stage")]
    pub stages: Vec<Stage>,
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

/// A text that prompts quote; of questions nothing, where one of the values that it quotes itself is empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "it is a text, or `by`, a choice of [settings], with a text for each of its words"
)]
pub enum Text {
    One(String),
    /// A text for each word of a choice. A word with [`YES_NO`] behind it is for questions of yes, no and maybe.
    By {
        by: String,
        #[serde(flatten)]
        words: BTreeMap<String, String>,
    },
}

/// The end of the name of a file with a prompt.
pub const PROMPT: &str = ".txt";
pub const YES_NO: &str = "-yes-no";

/// One step: a prompt to some of the agents.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The purpose of its calls in the log; later prompts quote its replies by this name.
    pub name: String,
    #[serde(default)]
    pub when: When,
    /// The words that choices must have for the stage to be there at all.
    #[serde(default)]
    pub only: BTreeMap<String, String>,
    /// Those that are asked; empty: all.
    #[serde(default)]
    pub agents: Vec<String>,
    /// How often it is gone through, while its condition holds, and until all say in a field that they agree.
    #[serde(default = "once", deserialize_with = "whole::<1, 100, _, _>")]
    pub rounds: u32,
    /// The stage with which each of its rounds begins, so that they go through all stages between, too.
    pub from: Option<String>,
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
    /// Whether the sentence where most errors are is suspected, and those with the right and the wrong sentence most like it are shown.
    #[serde(default)]
    pub nearest: bool,
    /// How it shows one.
    #[serde(default)]
    pub example: String,
    /// How many exemplars, where that is not the setting's number.
    pub shots: Option<u32>,
    /// How many of the best exemplars are drawn from.
    pub drawn_from: Option<usize>,
    /// Whether the corpus is searched for the last words, or the longest of the sentence; `{passages}` quotes the best passage.
    #[serde(default)]
    pub search: bool,
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
    /// And it is known in which sentence.
    Sentence,
    /// And the last reply named another sentence, or none.
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
    /// Flag and correction, of the suspected sentence.
    OfSentence,
    /// That there is no error. Without a passage it is not asked.
    Veto,
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
    /// Of a flag: the word for no error, and the word for one. Of whether somebody agrees: that for no, and that for yes.
    #[serde(default)]
    pub words: Vec<String>,
}

impl FieldOf {
    /// The word for no, or for yes: of a flag that there is an error.
    pub fn word(&self, is_yes: bool) -> &str {
        self.words.get(usize::from(is_yes)).map_or("", String::as_str)
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
    /// Whether the rounds may end.
    Agreed,
    /// What the next search looks up; alone.
    Word,
}

impl Text {
    pub fn texts(&self) -> Vec<&String> {
        match self {
            Text::One(text) => vec![text],
            Text::By { words, .. } => words.values().collect(),
        }
    }
}

impl SystemFile {
    /// The stages that are gone through together, by their places, and how often.
    pub fn groups(&self) -> Vec<(Range<usize>, u32)> {
        let (mut groups, mut start) = (Vec::new(), 0);
        while let Some(first) = self.stages.get(start) {
            let is_last = |stage: &Stage| stage.from.as_ref() == Some(&first.name);
            let last = start + self.stages[start..].iter().position(is_last).unwrap_or(0);
            groups.push((start..last + 1, self.stages[last].rounds));
            start = last + 1;
        }
        groups
    }

    /// Where a text stands or the name of its file: the latter alone.
    pub fn named(&mut self) -> impl Iterator<Item = &mut String> {
        fn of_text(one: &mut Text) -> Vec<&mut String> {
            match one {
                Text::One(text) => vec![text],
                Text::By { words, .. } => words.values_mut().collect(),
            }
        }
        let stages = self.stages.iter_mut();
        let stages = stages.flat_map(|one| [&mut one.system, &mut one.user, &mut one.example]);
        let all = stages.chain(self.texts.values_mut().flat_map(of_text));
        all.filter(|one| one.ends_with(PROMPT) && !one.contains(char::is_whitespace))
    }
}
