//! A model's chat template: messages to the text that the model was trained to see.
//!
//! The text holds every special token, so it is tokenised without adding any. What is written in a message stays text:
//! only the template writes control tokens. A template that leaves a message out is refused, since nobody would see that the
//! model was asked something else. Dates are pinned, or the same question would be another prompt tomorrow.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::files::Found;
use self::jinja::{Compiled, Problem};
use crate::ceiling::CeilingError;
use crate::fault::faults;
use crate::tokenizer::{Mask, THINKING, Tokenizer, TokenizerError};

mod files;
mod jinja;

#[derive(Debug)]
pub struct ChatTemplate {
    compiled: Compiled,
    /// The tokens that it may name, such as `bos_token`.
    tokens: Vec<(String, String)>,
    path: PathBuf,
    /// As it was read.
    pub source: String,
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Such as `system`, `user`, `assistant`.
    pub role: String,
    pub content: String,
}

/// A chat as a model is given it.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// As the template writes it, control tokens by name.
    pub text: String,
    pub tokens: Vec<u32>,
}

faults! {
    /// Why there is no prompt of these messages.
    #[derive(Debug, Error)]
    pub enum ChatError {
        #[error(
            "no chat template in {directory}: neither chat_template.jinja, chat_template.json nor tokenizer_config.json has one"
        )]
        Missing { directory: PathBuf } => Artefact;
        #[error("{path}: {problem}")]
        Unreadable { path: PathBuf, problem: String } => Artefact;
        #[error("the chat template of {path} does not compile: {problem}")]
        Compile { path: PathBuf, problem: String } => Artefact;
        #[error("the chat template of {path} refuses these messages: {problem}")]
        Render { path: PathBuf, problem: String } => Artefact;
        #[error("the chat template of {path} leaves out message {place} of {of}, the {role}'s")]
        LeftOut { path: PathBuf, place: usize, of: usize, role: String } => Artefact,
            "the model was trained without such messages: take another model";
        #[error("the chat template of {path}: {source}")]
        Stopped { path: PathBuf, source: CeilingError } => source.blame(), source.hint();
        #[error(transparent)]
        Tokenizer(error: #[from] TokenizerError) => Artefact;
    }
}

impl Message {
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into() }
    }
}

impl ChatTemplate {
    /// Reads the template of a checkpoint's directory: `chat_template.jinja`, else `chat_template.json`, else
    /// the field `chat_template` of `tokenizer_config.json`, whose special tokens it is given.
    ///
    /// # Errors
    /// Files that cannot be read or hold none; a template that does not compile, or that comes to what is not known here in a plain
    /// conversation: otherwise that would come to light in the middle of a run.
    pub fn load(directory: &Path) -> Result<ChatTemplate, ChatError> {
        let Found { path, source, tokens } = files::find(directory)?;
        let sha256 = crate::digest::sha256(&source);
        let failed = |problem: Problem| match problem {
            Problem::Stopped(source) => ChatError::Stopped { path: path.clone(), source },
            said => ChatError::Compile { path: path.clone(), problem: said.to_string() },
        };
        let compiled = Compiled::compile(&source).map_err(failed)?;
        let template = ChatTemplate { compiled, tokens, path: path.clone(), source, sha256 };
        for (messages, thinking, opens_turn) in conversations() {
            // It may refuse a system's message, or one of an assistant.
            match template.try_render(&messages, thinking, opens_turn) {
                Err(problem) if !problem.is_of_these_messages() => return Err(failed(problem)),
                _ => {}
            }
        }
        Ok(template)
    }

    /// Whether it can let the model think: it has the switch `enable_thinking`, or begins every turn of the model with `<think>`.
    pub fn lets_think(&self) -> bool {
        let turn = [Message::new("user", "?")];
        let opens =
            || self.render(&turn, true).is_ok_and(|text| text.trim_end().ends_with("<think>"));
        self.source.contains("enable_thinking") || opens()
    }

    /// The token that templates know as `name`: `bos_token`, `eos_token`, `pad_token`.
    pub fn token(&self, name: &str) -> Option<&str> {
        self.tokens.iter().find(|(known, _)| known == name).map(|(_, token)| token.as_str())
    }

    /// The control token that it writes behind a turn of the model, if it writes one.
    pub fn end_of_turn(&self, tokenizer: &Tokenizer) -> Option<u32> {
        const SAID: &str = "What the assistant says.";
        let messages = [Message::new("user", "?"), Message::new("assistant", SAID)];
        let text = self.try_render(&messages, false, false).ok()?;
        let (_, behind) = text.rsplit_once(SAID)?;
        let first = tokenizer.encode(behind.trim_start()).ok()?.first().copied()?;
        Some(first).filter(|id| tokenizer.is_control(*id))
    }

    /// The text of `messages` and its tokens. The control tokens among these are those that the template writes: what
    /// looks like one in a message is text. Through its last `</think>`, an assistant's message holds its thinking, which
    /// the template cuts or keeps as it would.
    pub fn prompt(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        thinking: bool,
    ) -> Result<Prompt, ChatError> {
        let texts = messages.iter().flat_map(|message| [&message.role, &message.content]);
        let texts = texts.chain([&self.source]).map(String::as_str);
        let mask = Mask::new(tokenizer.control_edges(), texts)
            .ok_or_else(|| self.refused("they use every character of private use"))?;
        let covered: Vec<Message> =
            messages.iter().map(|message| cover(message, &mask, tokenizer)).collect();
        self.refuse_losses(&covered, &mask, thinking)?;
        let text = self.render(&covered, thinking)?;
        let tokens = tokenizer.encode_covered(&text, &mask)?;
        Ok(Prompt { text: mask.uncover(&text), tokens })
    }

    /// The text of `messages`, ready for the model's turn. `thinking` is what templates know as `enable_thinking`.
    pub fn render(&self, messages: &[Message], thinking: bool) -> Result<String, ChatError> {
        self.try_render(messages, thinking, true).map_err(|problem| match problem {
            Problem::Stopped(source) => ChatError::Stopped { path: self.path.clone(), source },
            said => self.refused(said.to_string()),
        })
    }

    fn refused(&self, problem: impl Into<String>) -> ChatError {
        ChatError::Render { path: self.path.clone(), problem: problem.into() }
    }

    fn try_render(
        &self,
        messages: &[Message],
        thinking: bool,
        opens_turn: bool,
    ) -> Result<String, Problem> {
        let given = context! {
            messages => Value::from(Serde(messages)),
            add_generation_prompt => opens_turn,
            enable_thinking => thinking,
            // As transformers gives them where there are none.
            tools => (),
            documents => (),
        };
        let tokens = Value::from_pairs(self.tokens.iter().cloned());
        let context = context! { ..given, ..tokens };
        self.compiled.render(context)
    }

    /// Renders the messages once more, each with a mark behind it: a mark that does not come out shows that its message does not.
    fn refuse_losses(
        &self,
        messages: &[Message],
        mask: &Mask,
        thinking: bool,
    ) -> Result<(), ChatError> {
        let spare = mask.spare;
        let mark = |index: usize| format!("{spare}{index}{spare}");
        let marked = messages.iter().enumerate().map(|(index, message)| {
            Message::new(message.role.clone(), message.content.clone() + &mark(index))
        });
        let text = self.render(&marked.collect::<Vec<_>>(), thinking)?;
        let shown = marks(&text, spare);
        match (0..messages.len()).find(|index| !shown.contains(index)) {
            None => Ok(()),
            Some(index) => Err(ChatError::LeftOut {
                path: self.path.clone(),
                place: index + 1,
                of: messages.len(),
                role: messages[index].role.clone(),
            }),
        }
    }
}

/// Plain conversations, each with and without thinking and the model's turn.
fn conversations() -> impl Iterator<Item = (Vec<Message>, bool, bool)> {
    let said = |role: &str| Message::new(role, format!("What the {role} says."));
    let whole = ["system", "user", "assistant", "user"].map(said);
    [0..4, 1..4, 1..2].into_iter().flat_map(move |range| {
        let messages = whole[range].to_vec();
        let turns = [(false, true), (true, true), (false, false)];
        turns.map(move |(thinking, opens_turn)| (messages.clone(), thinking, opens_turn))
    })
}

/// The numbers that stand between two of `sign` in a text.
fn marks(text: &str, sign: char) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once(sign) {
        let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let (number, end) = behind.split_at(digits);
        let is_closed = end.starts_with(sign);
        found.extend(number.parse::<usize>().ok().filter(|_| is_closed));
        rest = if is_closed { &end[sign.len_utf8()..] } else { behind };
    }
    found
}

/// The message behind `mask`, but for the tags of an assistant's thinking, which are the model's own tokens. A role stays what
/// templates compare it with, unless it is no word: then a control token could be written in it.
fn cover(message: &Message, mask: &Mask, tokenizer: &Tokenizer) -> Message {
    let Message { role, content } = message;
    let [_, (_, close)] = THINKING;
    let end = content.rfind(close).filter(|_| role == "assistant");
    let (thinking, said) = content.split_at(end.map_or(0, |at| at + close.len()));
    let shown = THINKING.iter().fold(mask.cover(thinking), |covered, (channel, tag)| {
        let own = if tokenizer.id(channel).is_some() { channel } else { tag };
        covered.replace(&mask.cover(tag), own)
    });
    let is_word = role.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let role = if is_word { role.clone() } else { mask.cover(role) };
    Message::new(role, shown + &mask.cover(said))
}

#[cfg(test)]
mod tests;
