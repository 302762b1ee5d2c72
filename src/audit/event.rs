//! What is told to the trail: a named event with its fields, and the texts that it is about.

use serde_json::{Map, Value, json};

use super::key::{Key, random_name};
use super::{AuditContent, AuditOptions};
use crate::diagnosis::Failure;

/// Something that was done.
#[derive(Clone, Debug)]
pub struct Event {
    fields: Map<String, Value>,
    /// Fields that tell of a text and stand in the line under the key.
    sums: Vec<(&'static str, String)>,
    /// What says more than that it happened.
    detail: Option<(&'static str, Value)>,
    texts: Option<Texts>,
}

/// What went in and what came out; with what is needed to make it again.
#[derive(Clone, Debug)]
pub struct Texts {
    pub input: Value,
    pub output: Value,
    /// Kept beside them, where texts are kept.
    pub more: Map<String, Value>,
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
        Event { fields, sums: Vec::new(), detail: None, texts: None }
    }

    /// With a field, unless its value is null.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Event {
        let value = value.into();
        if !value.is_null() {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }

    /// With a field that could tell a text to whoever guesses: the line has its sum under the key.
    pub fn with_sum(mut self, name: &'static str, text: impl Into<String>) -> Event {
        self.sums.push((name, text.into()));
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
    ///
    /// # Errors
    /// A machine without random numbers.
    pub(super) fn seal(self, key: &Key, options: &AuditOptions) -> Result<Sealed, Failure> {
        let Event { mut fields, sums, detail, texts } = self;
        if !options.addresses {
            fields.shift_remove("from");
        }
        if options.content == AuditContent::None {
            return Ok(Sealed { fields, content: None });
        }
        for (name, text) in sums {
            fields.insert(name.to_owned(), key.sum_bytes(text.as_bytes()).into());
        }
        if let Some((name, value)) = detail {
            fields.insert(name.to_owned(), value);
        }
        let Some(Texts { input, output, more }) = texts else {
            return Ok(Sealed { fields, content: None });
        };
        for (name, value) in [("input", &input), ("output", &output)] {
            if !value.is_null() {
                fields.insert(name.to_owned(), key.sum(value).into());
            }
        }
        let mut content = None;
        if options.content == AuditContent::Full {
            let id = random_name()?;
            fields.insert("content".to_owned(), id.as_str().into());
            let mut kept = more;
            kept.insert("input".to_owned(), input);
            kept.insert("output".to_owned(), output);
            content = Some(Content { id, text: json!(kept).to_string() });
        }
        Ok(Sealed { fields, content })
    }
}
