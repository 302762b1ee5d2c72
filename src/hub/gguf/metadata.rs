//! What a GGUF file says of its model, by key.

use super::{Gguf, GgufError};

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Integer(i128),
    Float(f64),
    Flag(bool),
    Text(String),
    Texts(Vec<String>),
    /// Of any type of number; types of tokens and scores are exact.
    Numbers(Vec<f32>),
}

impl Gguf {
    /// What stands under a key, if anything does.
    fn get<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.refused(
                format!("`{}` in its metadata is not {kind}", shown(key)),
                "the file was written by an unknown program: take one of llama.cpp's converter",
            )),
        }
    }

    pub fn integer(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.get(key, "a number from 0 on", |value| match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        })
    }

    pub fn float(&self, key: &str) -> Result<Option<f64>, GgufError> {
        self.get(key, "a number", |value| match value {
            Value::Float(number) => Some(*number).filter(|number| number.is_finite()),
            Value::Integer(number) => Some(*number as f64),
            _ => None,
        })
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.get(key, "true or false", |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })
    }

    pub fn text(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.get(key, "a text", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub fn texts(&self, key: &str) -> Result<Option<&[String]>, GgufError> {
        self.get(key, "a list of texts", |value| match value {
            Value::Texts(texts) => Some(texts.as_slice()),
            _ => None,
        })
    }

    pub fn numbers(&self, key: &str) -> Result<Option<&[f32]>, GgufError> {
        self.get(key, "a list of numbers", |value| match value {
            Value::Numbers(numbers) => Some(numbers.as_slice()),
            _ => None,
        })
    }

    /// What has to be there.
    pub fn need<T>(&self, key: &str, found: Result<Option<T>, GgufError>) -> Result<T, GgufError> {
        found?.ok_or_else(|| {
            self.refused(
                format!("`{key}` is missing in its metadata"),
                "the file was written by an unknown program: take one of llama.cpp's converter",
            )
        })
    }
}

/// The beginning of a text from the file, for a message.
pub fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
