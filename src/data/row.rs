//! One record of a data file: checked access to its fields, and its place for error messages.

use serde_json::{Map, Value};

use super::error::{MEND, MEND_CSV, MEND_JSON, shortened};
use super::{Choice, DataError, Place};

pub struct Row {
    pub place: Place,
    pub fields: Map<String, Value>,
}

impl Row {
    pub fn new(place: Place, value: Value) -> Result<Self, DataError> {
        match value {
            Value::Object(fields) => Ok(Self { place, fields }),
            _ => Err(place.refused("an object is expected", MEND_JSON)),
        }
    }

    /// The error for a field of this row; in the message `problem` follows the field's name.
    pub fn wrong(&self, field: &str, problem: impl Into<String>) -> DataError {
        self.place.of_field(field, problem)
    }

    /// Refuses fields that are not among `known`.
    pub fn refuse_others(&self, known: &[&str]) -> Result<(), DataError> {
        let unknown = self.fields.keys().find(|field| !known.contains(&field.as_str()));
        unknown.map_or(Ok(()), |field| {
            let (name, known) = (shortened(field), known.join(", "));
            let problem = format!("field `{name}` is unknown; the fields are {known}");
            // A header that nothing has split.
            Err(self.place.refused(problem, if field.contains(';') { MEND_CSV } else { MEND }))
        })
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
            Some(_) => Err(self.wrong(field, "must be a string or a whole number")),
        }
    }

    /// A list of at least one text.
    pub fn texts(&self, field: &str) -> Result<Vec<String>, DataError> {
        let texts = self.require(field)?.as_array().filter(|texts| !texts.is_empty());
        let texts = texts.ok_or_else(|| self.wrong(field, "must be a list, and not empty"))?;
        texts.iter().map(|text| Ok(self.as_text(field, text)?.to_owned())).collect()
    }

    /// An id, a string or an integer, that can be written on a line of an ids file.
    pub fn optional_id(&self, field: &str) -> Result<Option<String>, DataError> {
        let is_id = |id: &str| {
            !id.is_empty()
                && id == id.trim()
                && !id.starts_with('#')
                && !id.contains(char::is_control)
        };
        match self.word(field)? {
            Some(id) if !is_id(&id) => {
                let problem =
                    "is empty, or has spaces around it, # before it or a control character in it";
                Err(self.wrong(field, problem))
            }
            id => Ok(id),
        }
    }

    pub fn id(&self, field: &str) -> Result<String, DataError> {
        self.optional_id(field)?.ok_or_else(|| self.wrong(field, "is missing"))
    }

    /// The options of a list, or of an object keyed by letter: 2 to 10 of them, lettered from A without gaps.
    pub fn options(&self, field: &str) -> Result<Vec<Choice>, DataError> {
        let value = self.require(field)?;
        let count = match value {
            Value::Array(texts) => texts.len(),
            Value::Object(texts) => texts.len(),
            _ => return Err(self.wrong(field, "must be an object or a list")),
        };
        if !(2..=10).contains(&count) {
            return Err(self.wrong(field, format!("must hold 2 to 10 options, not {count}")));
        }
        let options = ('A'..).zip(0..count).map(|(letter, place)| {
            let text = value.get(place).or_else(|| value.get(letter.to_string()));
            let text = text.ok_or_else(|| self.wrong(field, format!("has no option {letter}")))?;
            let text = self.as_text(&format!("{field}.{letter}"), text)?.to_owned();
            Ok(Choice { letter, text })
        });
        options.collect()
    }

    /// A field that names one of the options by its letter.
    pub fn letter(&self, field: &str, options: &[Choice]) -> Result<char, DataError> {
        let text = self.text(field)?;
        let mut letters = options.iter().map(|choice| choice.letter);
        letters.find(|letter| text == letter.to_string()).ok_or_else(|| {
            let letters: Vec<String> = options.iter().map(|one| one.letter.to_string()).collect();
            self.wrong(field, format!("is not one of {}", letters.join(", ")))
        })
    }

    fn as_text<'a>(&self, field: &str, value: &'a Value) -> Result<&'a str, DataError> {
        match value {
            Value::String(text) if text.trim().is_empty() => Err(self.wrong(field, "is empty")),
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(field, "must be a string")),
        }
    }
}
