//! One record of a data file: checked access to its fields, and its place for error messages.

use serde_json::{Map, Value};

use super::error::quoted;
use super::{Choice, DataError, Place};

pub struct Row {
    pub place: Place,
    pub fields: Map<String, Value>,
}

impl Row {
    pub fn new(place: Place, value: Value) -> Result<Self, DataError> {
        match value {
            Value::Object(fields) => Ok(Self { place, fields }),
            other => Err(DataError::Syntax {
                place,
                problem: format!("an object is expected, not {}", kind(&other)),
            }),
        }
    }

    /// The error for a field of this row; in the message `problem` follows the field's name.
    pub fn wrong(&self, field: &str, problem: impl Into<String>) -> DataError {
        DataError::Field {
            place: self.place.clone(),
            field: field.to_owned(),
            problem: problem.into(),
        }
    }

    /// Refuses fields that are not among `known`.
    pub fn refuse_others(&self, known: &[&str]) -> Result<(), DataError> {
        match self.fields.keys().find(|field| !known.contains(&field.as_str())) {
            Some(field) => {
                Err(self.wrong(field, format!("is unknown; the fields are {}", known.join(", "))))
            }
            None => Ok(()),
        }
    }

    /// A field's value; `null` counts as absent.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    pub fn require(&self, field: &str) -> Result<&Value, DataError> {
        self.get(field).ok_or_else(|| self.wrong(field, "is missing"))
    }

    pub fn text(&self, field: &str) -> Result<&str, DataError> {
        self.as_text(field, self.require(field)?)
    }

    pub fn optional_text(&self, field: &str) -> Result<Option<&str>, DataError> {
        self.get(field).map(|value| self.as_text(field, value)).transpose()
    }

    /// A text, which may be empty, or a whole number as one.
    pub fn word(&self, field: &str) -> Result<Option<String>, DataError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) if !number.is_f64() => Ok(Some(number.to_string())),
            Some(other) => Err(self.wrong(field, format!("must be a string, not {}", kind(other)))),
        }
    }

    /// A list of at least one text.
    pub fn texts(&self, field: &str) -> Result<Vec<&str>, DataError> {
        match self.require(field)? {
            Value::Array(texts) if texts.is_empty() => Err(self.wrong(field, "is empty")),
            Value::Array(texts) => texts.iter().map(|text| self.as_text(field, text)).collect(),
            other => Err(self.wrong(field, format!("must be a list, not {}", kind(other)))),
        }
    }

    /// A field that is an object, as a row at the same place.
    pub fn object(&self, field: &str) -> Result<Option<Row>, DataError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Object(fields)) => {
                Ok(Some(Row { place: self.place.clone(), fields: fields.clone() }))
            }
            Some(other) => {
                Err(self.wrong(field, format!("must be an object, not {}", kind(other))))
            }
        }
    }

    /// An id, a string or an integer, that can be written on a line of an ids file.
    pub fn optional_id(&self, field: &str) -> Result<Option<String>, DataError> {
        let id = self.word(field)?;
        match id.as_deref() {
            Some(id) if id.trim().is_empty() => Err(self.wrong(field, "is empty")),
            Some(id) if id != id.trim() || id.starts_with('#') || id.contains(char::is_control) => {
                let problem = "no spaces around an id, no # before it, no control characters in it";
                Err(self.wrong(field, format!("is {}: {problem}", quoted(id))))
            }
            _ => Ok(id),
        }
    }

    /// The options of a list, or of an object keyed by letter, in letter order: 2 to 10 of them, lettered from A without gaps.
    pub fn options(&self, field: &str) -> Result<Vec<Choice>, DataError> {
        let mut options: Vec<(String, &Value)> = match self.require(field)? {
            Value::Array(texts) => ('A'..).map(String::from).zip(texts).collect(),
            Value::Object(texts) => {
                texts.iter().map(|(letter, text)| (letter.clone(), text)).collect()
            }
            other => {
                return Err(
                    self.wrong(field, format!("must be an object or a list, not {}", kind(other)))
                );
            }
        };
        if !(2..=10).contains(&options.len()) {
            return Err(
                self.wrong(field, format!("must hold 2 to 10 options, not {}", options.len()))
            );
        }
        options.sort_by(|(one, _), (other, _)| one.cmp(other));
        let lettered = options.into_iter().zip('A'..);
        let choices = lettered.map(|((key, text), letter)| {
            if key != letter.to_string() {
                let problem = format!("has an option {} where {letter} is due", quoted(&key));
                return Err(self.wrong(field, problem));
            }
            let text = self.as_text(&format!("{field}.{letter}"), text)?;
            Ok(Choice { letter, text: text.to_owned() })
        });
        choices.collect()
    }

    /// A field that names one of the options by its letter.
    pub fn letter(&self, field: &str, options: &[Choice]) -> Result<char, DataError> {
        let text = self.text(field)?;
        let named = options.iter().find(|choice| text == choice.letter.to_string());
        named.map(|choice| choice.letter).ok_or_else(|| {
            let letters: Vec<String> =
                options.iter().map(|choice| choice.letter.to_string()).collect();
            self.wrong(field, format!("is {}, not one of {}", quoted(text), letters.join(", ")))
        })
    }

    fn as_text<'a>(&self, field: &str, value: &'a Value) -> Result<&'a str, DataError> {
        match value {
            Value::String(text) if text.trim().is_empty() => Err(self.wrong(field, "is empty")),
            Value::String(text) => Ok(text),
            other => Err(self.wrong(field, format!("must be a string, not {}", kind(other)))),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number too large or with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
