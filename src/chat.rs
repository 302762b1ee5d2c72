//! A model's chat template: messages to the text that the model was trained to see.
//!
//! The text holds every special token, so it is tokenised without adding any. What is written in a message stays text:
//! only the template writes control tokens. Dates are pinned, or the same question would be another prompt tomorrow.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, Error, ErrorKind, Output, State, context};
use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
use crate::record::Message;
use crate::tokenizer::{Mask, Tokenizer, TokenizerError};

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    pub bos_token: Option<String>,
    pub eos_token: Option<String>,
    pub pad_token: Option<String>,
    path: PathBuf,
    /// As it was read.
    pub source: String,
    /// Over the template's text.
    pub sha256: String,
}

/// A chat as a model is given it.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub text: String,
    pub tokens: Vec<u32>,
}

/// How the model's turn begins.
#[derive(Clone, Copy, Debug)]
pub struct TurnOptions {
    /// What templates know as `enable_thinking`.
    pub thinking: bool,
    /// Whether the template opens the turn, as it does unless the caller says otherwise.
    pub opens_turn: bool,
    /// Whether the text ends with the last message, so that the model goes on in it.
    pub continues_last: bool,
}

impl Default for TurnOptions {
    fn default() -> TurnOptions {
        TurnOptions { thinking: false, opens_turn: true, continues_last: false }
    }
}

/// The tags of a thinking section.
const THINKING: [&str; 2] = ["<think>", "</think>"];

/// The day that templates are told: the one that Llama 3.2's falls back to.
const DATE: [(&str, &str); 9] = [
    ("%d", "26"),
    ("%m", "07"),
    ("%Y", "2024"),
    ("%b", "Jul"),
    ("%B", "July"),
    ("%y", "24"),
    ("%A", "Friday"),
    ("%a", "Fri"),
    ("%%", "%"),
];

/// Spaces that `tojson` indents by at most: templates are not ours, and memory is not theirs.
const MOST_INDENT: usize = 16;

/// Ten times the instructions that a published template takes for a long debate.
const MOST_STEPS: u64 = 1_000_000;
/// Instructions times the bytes of the template, each of which an instruction may write to a variable. Published templates of
/// 10 KiB have 200,000 steps.
const MOST_STEPS_BY_BYTES: u64 = 2 << 30;
/// Published templates take a fifth of it.
const LONGEST_TEMPLATE: usize = 64 << 10;
/// Published templates have none. A text times a number is a constant of up to 100 MB, made when the template is compiled.
const MOST_PRODUCTS: usize = 8;
/// For the deepest chain that so long a template can hold; only what is used becomes memory.
const COMPILER_STACK: usize = 256 << 20;
/// More text than any context holds.
const MOST_BYTES: usize = 64 << 20;

#[derive(Debug, Error)]
pub enum ChatError {
    #[error(
        "no chat template in {directory}: neither chat_template.jinja, chat_template.json nor tokenizer_config.json has one"
    )]
    Missing { directory: PathBuf },
    #[error("{path}: {problem}")]
    Unreadable { path: PathBuf, problem: String },
    #[error("the chat template of {path} does not compile: {problem}")]
    Compile { path: PathBuf, problem: String },
    #[error("the chat template of {path} refuses these messages: {problem}")]
    Render { path: PathBuf, problem: String },
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

impl Diagnosis for ChatError {
    fn blame(&self) -> Blame {
        Blame::Artefact
    }
}

impl ChatTemplate {
    /// Reads the template of a checkpoint's directory: `chat_template.jinja`, else `chat_template.json`, else
    /// the field `chat_template` of `tokenizer_config.json`, whose bos and eos tokens it is given.
    pub fn load(directory: &Path) -> Result<ChatTemplate, ChatError> {
        let config = read_json(&directory.join("tokenizer_config.json"))?.unwrap_or_default();
        let (path, text) = find(directory, &config)?;
        let token = |name: &str| {
            let token = &config[name];
            token.as_str().or_else(|| token["content"].as_str()).map(str::to_owned)
        };
        let sha256 = crate::digest::sha256(&text);
        let refuse = |problem: String| ChatError::Compile { path: path.clone(), problem };
        if text.len() > LONGEST_TEMPLATE {
            return Err(refuse(format!("it is longer than {LONGEST_TEMPLATE} bytes")));
        }
        let products = count_products(&text);
        if products > MOST_PRODUCTS {
            return Err(refuse(format!(
                "it has {products} `*` in its tags; {MOST_PRODUCTS} at most are taken"
            )));
        }
        // A long chain of operators is compiled by recursion.
        let compiled = std::thread::Builder::new()
            .stack_size(COMPILER_STACK)
            .spawn({
                let text = text.clone();
                || compile(text)
            })
            .map_err(|error| refuse(error.to_string()))?
            .join();
        let environment = compiled
            .map_err(|_| refuse("its compiler panicked".to_owned()))?
            .map_err(|error| refuse(describe(&error)))?;
        Ok(ChatTemplate {
            environment,
            bos_token: token("bos_token"),
            eos_token: token("eos_token"),
            pad_token: token("pad_token"),
            path,
            source: text,
            sha256,
        })
    }

    /// The text of `messages` and its tokens. The control tokens among these are those that the template writes: what
    /// looks like one in a message is text. Through its last `</think>`, an assistant's message holds its thinking, which
    /// the template cuts or keeps as it would.
    ///
    /// # Errors
    /// When the template refuses the messages, or the text cannot be tokenised.
    pub fn prompt(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        thinking: bool,
    ) -> Result<Prompt, ChatError> {
        let turn = TurnOptions { thinking, ..TurnOptions::default() };
        self.prompt_with(tokenizer, messages, turn)
    }

    /// As [`ChatTemplate::prompt`], and the model's turn begins as `turn` says.
    ///
    /// # Errors
    /// See [`ChatTemplate::prompt`]; a last message to go on in that is empty, or that the template does not show.
    pub fn prompt_with(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        turn: TurnOptions,
    ) -> Result<Prompt, ChatError> {
        let texts = messages.iter().flat_map(|message| [&message.role, &message.content]);
        let texts = texts.chain([&self.source]).map(String::as_str);
        let mask = Mask::new(tokenizer.control_edges(), texts)
            .ok_or_else(|| self.refused("they use every character of private use"))?;
        let covered: Vec<Message> = messages.iter().map(|message| cover(message, &mask)).collect();
        let mut text = self.render_with(&covered, turn)?;
        if turn.continues_last {
            let last = covered.last().map_or("", |message| message.content.trim());
            let end = text.rfind(last).filter(|_| !last.is_empty()).map(|at| at + last.len());
            let end = end.ok_or_else(|| {
                self.refused(
                    "the last message cannot be gone on in: it is empty, or not shown as it is",
                )
            })?;
            text.truncate(end);
        }
        let tokens = tokenizer.encode_covered(&text, &mask)?;
        Ok(Prompt { text: mask.uncover(&text), tokens })
    }

    /// The text of `messages`, ready for the model's turn. `thinking` is what templates know as `enable_thinking`.
    pub fn render(&self, messages: &[Message], thinking: bool) -> Result<String, ChatError> {
        self.render_with(messages, TurnOptions { thinking, ..TurnOptions::default() })
    }

    fn refused(&self, problem: impl Into<String>) -> ChatError {
        ChatError::Render { path: self.path.clone(), problem: problem.into() }
    }

    fn render_with(&self, messages: &[Message], turn: TurnOptions) -> Result<String, ChatError> {
        let refuse = |error: Error| self.refused(describe(&error));
        let template = self.environment.get_template("chat").map_err(refuse)?;
        let context = context! {
            messages => Value::from(Serde(messages)),
            add_generation_prompt => turn.opens_turn,
            enable_thinking => turn.thinking,
            bos_token => self.bos_token.as_deref().unwrap_or_default(),
            eos_token => self.eos_token.as_deref().unwrap_or_default(),
        };
        let mut text = Bounded(Vec::new());
        template.render_captured_to(context, &mut text).map_err(refuse)?;
        let garbled =
            |error: FromUtf8Error| Error::new(ErrorKind::BadSerialization, error.to_string());
        String::from_utf8(text.0).map_err(|error| refuse(garbled(error)))
    }
}

/// The message behind `mask`, but for the tags of an assistant's thinking.
fn cover(message: &Message, mask: &Mask) -> Message {
    let content = &message.content;
    let [_, close] = THINKING;
    let end = content.rfind(close).filter(|_| message.role == "assistant");
    let (thinking, said) = content.split_at(end.map_or(0, |at| at + close.len()));
    let shown = THINKING
        .iter()
        .fold(mask.cover(thinking), |covered, tag| covered.replace(&mask.cover(tag), tag));
    Message::new(mask.cover(&message.role), shown + &mask.cover(said))
}

/// Text that ends where a template repeats itself without end.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other("it renders more than 64 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn find(directory: &Path, config: &serde_json::Value) -> Result<(PathBuf, String), ChatError> {
    let path = directory.join("chat_template.jinja");
    if path.is_file() {
        let text = fs_err::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        return Ok((path, text));
    }
    let path = directory.join("chat_template.json");
    if let Some(value) = read_json(&path)? {
        return match value["chat_template"].as_str() {
            Some(text) => Ok((path, text.to_owned())),
            None => Err(unreadable(&path, "`chat_template` is not a text")),
        };
    }
    // One template, or several by name.
    let template = &config["chat_template"];
    let named =
        template.as_array().and_then(|list| list.iter().find(|entry| entry["name"] == "default"));
    match template.as_str().or_else(|| named.and_then(|entry| entry["template"].as_str())) {
        Some(text) => Ok((directory.join("tokenizer_config.json"), text.to_owned())),
        None => Err(ChatError::Missing { directory: directory.to_owned() }),
    }
}

/// A JSON file, or `None` where there is none.
fn read_json(path: &Path) -> Result<Option<serde_json::Value>, ChatError> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = fs_err::read_to_string(path).map_err(|error| unreadable(path, error))?;
    serde_json::from_str(&text).map(Some).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, problem: impl ToString) -> ChatError {
    ChatError::Unreadable { path: path.to_owned(), problem: problem.to_string() }
}

/// How many `*` stand in the tags of `template`, texts in them included.
fn count_products(template: &str) -> usize {
    let inside = |open: &str, close: &str| -> usize {
        let tags = template.split(open).skip(1).filter_map(|piece| piece.split(close).next());
        tags.map(|tag| tag.matches('*').count()).sum()
    };
    inside("{{", "}}") + inside("{%", "%}")
}

/// The engine as published templates expect it: Python's methods, block lines that leave no blanks, plain JSON.
fn compile(text: String) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(MOST_STEPS.min(MOST_STEPS_BY_BYTES / text.len().max(1) as u64)));
    environment.set_formatter(write_value);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |problem: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, problem))
    });
    environment.add_function("strftime_now", pinned_date);
    environment.add_filter("tojson", to_json);
    environment.add_template_owned("chat", text)?;
    Ok(environment)
}

/// What a rendering has written so far, to its text and to variables.
struct Written {
    bytes: usize,
}

/// Writes a value where the template says so, and counts its bytes: macros and blocks write to variables, which [`Bounded`] does not see.
fn write_value(output: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let written = state.get_or_insert_extension(Written { bytes: 0 });
    written.bytes += value.as_str().map_or_else(|| value.to_string().len(), str::len);
    if written.bytes > MOST_BYTES {
        return Err(Error::new(ErrorKind::WriteFailure, "it renders more than 64 MiB"));
    }
    minijinja::escape_formatter(output, state, value)
}

fn pinned_date(format: String) -> Result<String, Error> {
    let text = DATE.iter().fold(format, |text, (code, value)| text.replace(code, value));
    if text.contains('%') {
        let problem = format!("strftime_now: only dates are pinned, not `{text}`");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    Ok(text)
}

/// Unlike the built-in filter, leaves `<`, `>`, `&` and `'` as they are.
fn to_json(Serde(value): Serde<serde_json::Value>, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let fail =
        |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let mut bytes = Vec::new();
    match indent {
        Some(width) => {
            let blanks = " ".repeat(width.min(MOST_INDENT));
            let formatter = serde_json::ser::PrettyFormatter::with_indent(blanks.as_bytes());
            let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
            serde::Serialize::serialize(&value, &mut serializer).map_err(fail)?;
        }
        None => serde_json::to_writer(&mut bytes, &value).map_err(fail)?,
    }
    Ok(Value::from_safe_string(String::from_utf8_lossy(&bytes).into_owned()))
}

fn describe(error: &Error) -> String {
    match (error.detail(), error.line()) {
        (Some(detail), Some(line)) => format!("{detail} (line {line})"),
        (Some(detail), None) => detail.to_owned(),
        (None, _) => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
