//! Parses a step: observation, thought, and an action as an object or a call, from JSON or from labelled prose.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::{FinishReason, Parse};
use crate::systems::case::Parsed;
use crate::systems::reading::{self, is_nothing, json, record, said};
use crate::text::Pattern;

/// A step, as its call's log line has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepRecord {
    pub observation: String,
    pub thought: String,
    /// `None` where no known action could be read: the step is lost.
    pub action: Option<Action>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Action {
    Search {
        query: String,
    },
    FinalMistake {
        /// `NA` where the note has no mistake.
        sentence: String,
        correction: String,
    },
}

impl Parsed for StepRecord {}

impl StepRecord {
    /// The sentence that its answer names, or that there is none; `None` of a step that does not answer.
    pub fn sentence(&self) -> Option<&str> {
        match self.action.as_ref()? {
            Action::FinalMistake { sentence, .. } => Some(sentence),
            Action::Search { .. } => None,
        }
    }
}

impl Action {
    pub fn as_object(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As a call: `search("q")`.
    pub fn as_call(&self) -> String {
        let quoted =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        match self {
            Action::Search { query } => format!("search({})", quoted(query)),
            Action::FinalMistake { sentence, correction } => {
                format!("final_mistake({}, {})", quoted(sentence), quoted(correction))
            }
        }
    }
}

pub fn read(text: &str, finish_reason: FinishReason) -> (StepRecord, Parse) {
    let text = &text[..end_of_step(text)];
    let whole = record::read(text, finish_reason, |object| {
        let has = |key: &str| object.contains_key(key);
        let is_step = has("action") || has("thought") && has("observation");
        is_step.then(|| of_object(object))
    });
    let (step, parse) = whole.unwrap_or_else(|| (of_prose(said(text)), Parse::Fallback));
    let is_read = step.action.is_some();
    (step, parse.if_read(is_read))
}

/// The end of the step itself: models go on to make up its search results, or the next step.
fn end_of_step(text: &str) -> usize {
    static MADE_UP: Pattern = Pattern::new(r"(?i)\n\W*(?:results of step|step) \d+\b");
    let start = text.find("action").or_else(|| text.find("Action")).unwrap_or(text.len());
    MADE_UP.find_iter(text).map(|end| end.start()).find(|end| *end > start).unwrap_or(text.len())
}

fn of_object(object: &Map<String, Value>) -> StepRecord {
    let text = |key: &str| object.get(key).map(reading::text).unwrap_or_default();
    let beside = || {
        // `"action": "search", "action_input": "q"`.
        let named = ["action_input", "input", "arguments", "parameters", "args", "query"];
        named.iter().find_map(|key| object.get(*key))
    };
    let action = match object.get("action") {
        Some(Value::Object(inner)) => of_action_object(inner),
        Some(Value::String(call)) => of_call(call).or_else(|| named(call, beside()?)),
        Some(Value::Array(list)) => list.first().and_then(|first| match first {
            Value::Object(inner) => of_action_object(inner),
            other => of_call(&reading::text(other)),
        }),
        _ => None,
    };
    StepRecord { observation: text("observation"), thought: text("thought"), action }
}

/// An action as an object: `{"name": "search", "query": "q"}`, `{"search": "q"}`, or with its arguments in an object of their own.
fn of_action_object(object: &Map<String, Value>) -> Option<Action> {
    let lower = with_canonical_keys(object);
    let name = ["name", "action", "tool", "function", "type"]
        .iter()
        .find_map(|key| lower.get(*key)?.as_str());
    if let Some(name) = name {
        let nested = ["arguments", "parameters", "args", "input", "action_input"];
        let inner = nested.iter().find_map(|key| lower.get(*key));
        let given = inner.cloned().unwrap_or_else(|| lower.clone().into());
        return named(name, &given).or_else(|| of_call(name));
    }
    lower.iter().find_map(|(key, value)| named(key, value))
}

/// The two actions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Search,
    Final,
}

/// The action of a name; the paper, its figure and its release have three names for the answer.
fn kind(name: &str) -> Option<Kind> {
    match canonical(name).as_str() {
        "search" => Some(Kind::Search),
        "final_mistake" | "flag_mistake" | "final_flagged_mistake" => Some(Kind::Final),
        _ => None,
    }
}

fn with_canonical_keys(object: &Map<String, Value>) -> Map<String, Value> {
    object.iter().map(|(key, value)| (canonical(key), value.clone())).collect()
}

fn canonical(name: &str) -> String {
    name.trim().trim_matches(['`', '*', '"', '\'']).to_lowercase().replace([' ', '-'], "_")
}

/// The action of this name with what it was given: a text, a list, or an object.
fn named(name: &str, given: &Value) -> Option<Action> {
    const QUERY: &[&str] = &["query", "q", "search_query", "input", "text"];
    const ANSWER: [&[&str]; 2] = [
        &["sentence", "error_sentence", "mistake", "mistaken_sentence", "original"],
        &["correction", "corrected_sentence", "corrected", "corrected_text"],
    ];
    let kind = kind(name)?;
    let arguments = match given {
        Value::Object(object) => {
            let object = with_canonical_keys(object);
            let field = |names: &&[&str]| {
                let found = names.iter().find_map(|name| object.get(*name));
                found.map(|value| reading::text(value).trim().to_owned()).unwrap_or_default()
            };
            let fields: &[&[&str]] = match kind {
                Kind::Search => &[QUERY],
                Kind::Final => &ANSWER,
            };
            fields.iter().map(field).collect()
        }
        Value::Array(list) => list.iter().map(reading::text).collect(),
        other => vec![reading::text(other)],
    };
    of_arguments(kind, arguments)
}

/// A call as text: the name before the first bracket, its arguments up to the last.
fn of_call(text: &str) -> Option<Action> {
    let text = text.trim();
    if text.starts_with('{') {
        return json::objects(text).first().and_then(|found| of_action_object(&found.object));
    }
    let (name, rest) = text.split_once('(')?;
    let name = name.rsplit(|c: char| c.is_whitespace() || c == '`').next().unwrap_or(name);
    let kind = kind(name)?;
    // What follows a first call is another step's.
    static NEXT: Pattern = Pattern::new(
        r"\)[\s,;.`*]*(?:and |then )*(?:search|final_mistake|flag_mistake|final_flagged_mistake)\(",
    );
    let end = NEXT.find(rest).map(|next| next.start()).or_else(|| rest.rfind(')'));
    let arguments = arguments(&rest[..end.unwrap_or(rest.len())]);
    // An answer that was cut short in its sentence says nothing yet.
    if end.is_none() && kind == Kind::Final && arguments.len() < 2 {
        return None;
    }
    of_arguments(kind, arguments)
}

fn of_arguments(kind: Kind, arguments: Vec<String>) -> Option<Action> {
    let mut arguments = arguments.into_iter();
    let first = arguments.next()?;
    match kind {
        Kind::Search => {
            let has_words = first.contains(char::is_alphanumeric);
            has_words.then_some(Action::Search { query: first })
        }
        Kind::Final if first.is_empty() => None,
        Kind::Final => {
            let correction = arguments.next().unwrap_or_default();
            Some(Action::FinalMistake { sentence: first, correction })
        }
    }
}

/// The arguments of a call, with or without a name before `=`: quoted strings between commas; without quotes one text, or words for nothing.
fn arguments(inside: &str) -> Vec<String> {
    static NAME: Pattern = Pattern::new(r#"(?:^|(,))\s*\w+\s*[=:]\s*(["'“])"#);
    let inside = inside.trim();
    if !inside.contains(['"', '\'', '“']) {
        let parts = inside.split(',').map(str::trim);
        return match parts.clone().all(is_nothing) {
            true => parts.map(str::to_owned).collect(),
            false => vec![value_of(inside)],
        };
    }
    let list = json::list(&format!("[{}", NAME.replace_all(inside, "$1$2")));
    list.unwrap_or_default().iter().map(reading::text).collect()
}

fn value_of(text: &str) -> String {
    let named = text
        .split_once('=')
        .filter(|(name, _)| name.trim().chars().all(|c| c.is_alphanumeric() || c == '_'));
    named.map_or(text, |(_, value)| value).trim().to_owned()
}

/// A step in prose: what stands behind `Observation:`, `Thought:` and `Action:`; without the last, the last call in it.
fn of_prose(text: &str) -> StepRecord {
    let lower = text.to_ascii_lowercase();
    let place = |label: &str| {
        // Backwards, so that a long line with the label in it many times is not read as often.
        let places = lower.match_indices(label).filter(|(at, _)| {
            let mut line = lower[..*at].chars().rev().take_while(|c| *c != '\n');
            line.all(|c| !c.is_alphanumeric())
        });
        places.last().map(|(at, _)| (at, at + label.len()))
    };
    let labels = ["observation", "thought", "action"].map(place);
    let section = |index: usize| -> &str {
        let Some((start, after)) = labels[index] else { return "" };
        let ends = labels.iter().flatten().map(|(at, _)| *at).filter(|at| *at > start);
        let end = ends.min().unwrap_or(text.len());
        text[after..end]
            .trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '*' | '#' | '`'))
    };
    let names = ["search(", "final_mistake(", "flag_mistake(", "final_flagged_mistake("];
    let last_call = || {
        let at = names.iter().filter_map(|name| lower.rfind(name)).max()?;
        let line = text[at..].trim_end_matches(['`', '*', '.', ' ', '\n']);
        of_call(line)
    };
    let after_name = || {
        let (name, given) = section(2).split_once(':')?;
        named(name, &Value::from(given.trim().trim_matches('"')))
    };
    StepRecord {
        observation: section(0).to_owned(),
        thought: section(1).to_owned(),
        action: of_call(section(2)).or_else(after_name).or_else(last_call),
    }
}

#[cfg(test)]
mod tests;
