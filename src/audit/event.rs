//! What is told to the trail: a named event with its fields, and the texts that it is about.

use serde_json::{Map, Value, json};

use super::key::{Key, random_name};
use super::{AuditContent, AuditOptions};
use crate::diagnosis::Failure;

/// Fields that are sums under the trail's key.
pub(super) const SUMS: [&str; 6] = ["request", "input", "output", "kept", "item", "sent"];

/// Whether the lines of an event say by its fingerprint which key sums are made with.
pub(super) fn tells_key(event: &str) -> bool {
    event == "start" || event == "accept"
}

/// Something that was done.
#[derive(Clone, Debug)]
pub struct Event {
    fields: Map<String, Value>,
    /// Fields that tell of a text and stand in the line under the key.
    sums: Vec<(&'static str, String)>,
    /// Sums that were made already.
    ready: Vec<(&'static str, String)>,
    /// What says more than that it happened.
    detail: Option<(&'static str, Value)>,
    texts: Option<Texts>,
}

/// What went in and what came out; with what is needed to make it again.
#[derive(Clone, Debug)]
pub struct Texts {
    pub input: Input,
    pub output: Value,
    /// Kept beside them, where texts are kept.
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub enum Input {
    Value(Value),
    /// JSON as it was sent; never parsed here, so that it takes no more memory than that. Without its text where that is not kept.
    Sent {
        sum: String,
        json: Option<String>,
    },
}

impl From<Value> for Input {
    fn from(value: Value) -> Input {
        Input::Value(value)
    }
}

/// An event as a line has it, and the file of its texts.
pub(super) struct Sealed {
    pub fields: Map<String, Value>,
    pub content: Option<Content>,
}

/// A file of texts.
pub(super) struct Content {
    pub id: String,
    pub text: String,
}

impl Event {
    pub fn new(name: &str) -> Event {
        let fields = Map::from_iter([("event".to_owned(), name.into())]);
        Event { fields, sums: Vec::new(), ready: Vec::new(), detail: None, texts: None }
    }

    /// With a field, unless its value is null.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Event {
        let value = value.into();
        if !value.is_null() {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }

    /// With a field that could tell a text to whoever guesses: the line has its sum under the key. `name` is one of those that
    /// `verify` knows as sums.
    pub fn with_sum(mut self, name: &'static str, text: impl Into<String>) -> Event {
        debug_assert!(SUMS.contains(&name), "{name} is not among the names of sums");
        self.sums.push((name, text.into()));
        self
    }

    /// With the sum of what went in, and not its text: that is kept with how it ended.
    pub fn with_sum_of(mut self, input: &Input) -> Event {
        match input {
            Input::Sent { sum, .. } => self.ready.push(("input", sum.clone())),
            Input::Value(Value::Null) => {}
            Input::Value(value) => self.sums.push(("input", value.to_string())),
        }
        self
    }

    /// With what came of it, without its text.
    pub fn with_detail(mut self, name: &'static str, value: Value) -> Event {
        self.detail = Some((name, value));
        self
    }

    /// With what it is about.
    pub fn with_texts(mut self, texts: Texts) -> Event {
        self.texts = Some(texts);
        self
    }

    pub(super) fn into_fields(self) -> Map<String, Value> {
        self.fields
    }

    /// Leaves out what the trail is not to keep.
    pub(super) fn seal(self, key: &Key, options: &AuditOptions) -> Result<Sealed, Failure> {
        let Event { mut fields, sums, ready, detail, texts } = self;
        if !options.addresses {
            fields.shift_remove("from");
        }
        if fields.get("event").and_then(Value::as_str).is_some_and(tells_key) {
            fields.insert("key".to_owned(), key.fingerprint().into());
        }
        if options.content == AuditContent::None {
            return Ok(Sealed { fields, content: None });
        }
        for (name, text) in sums {
            fields.insert(name.to_owned(), key.sum_bytes(text.as_bytes()).into());
        }
        fields.extend(ready.into_iter().map(|(name, sum)| (name.to_owned(), sum.into())));
        if let Some((name, value)) = detail {
            fields.insert(name.to_owned(), value);
        }
        let Some(Texts { input, output, more }) = texts else {
            return Ok(Sealed { fields, content: None });
        };
        let (sum, input) = match input {
            Input::Value(Value::Null) => (None, None),
            Input::Value(value) => (Some(key.sum(&value)), Some(value.to_string())),
            Input::Sent { sum, json } => (Some(sum), json),
        };
        let output_sum = Some(&output).filter(|output| !output.is_null()).map(|it| key.sum(it));
        for (name, sum) in [("input", sum), ("output", output_sum)] {
            if let Some(sum) = sum {
                fields.insert(name.to_owned(), sum.into());
            }
        }
        let mut content = None;
        if options.content == AuditContent::Full {
            let id = random_name()?;
            fields.insert("content".to_owned(), id.as_str().into());
            let more = json!(more).to_string();
            let more = &more[1..more.len() - 1];
            let comma = if more.is_empty() { "" } else { "," };
            let input = input.as_deref().unwrap_or("null");
            let text = format!("{{{more}{comma}\"input\":{input},\"output\":{output}}}");
            // Over all of it: what is beside input and output is shown and published too.
            fields.insert("kept".to_owned(), key.sum_bytes(text.as_bytes()).into());
            content = Some(Content { id, text });
        }
        Ok(Sealed { fields, content })
    }
}
