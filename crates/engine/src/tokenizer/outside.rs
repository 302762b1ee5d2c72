//! The library's tokenizer of a file from outside: read and used under a ceiling, and refused once it was stopped there.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::Value;
use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::BPE;
use tokenizers::{Encoding, Tokenizer as Inner};

use crate::ceiling::{Ceiling, CeilingError, Source};
use crate::outside;

/// Published ones have 34 MB at most.
const LONGEST_FILE: u64 = 256 << 20;
/// Of memory for a byte of the file, where published ones take up to thirty-five; and the least.
const READING_OF_A_BYTE: usize = 64;
const READING: usize = 128 << 20;
const READING_TIME: Duration = Duration::from_secs(300);
/// Of memory for a byte of a text that is tokenised, where published tokenizers take up to 400; and the least.
const USING_OF_A_BYTE: usize = 1 << 10;
const USING: usize = 64 << 20;
/// For each byte of a text: published tokenizers take a hundredth.
const USING_TIME_OF_A_BYTE: Duration = Duration::from_micros(20);
const USING_TIME: Duration = Duration::from_secs(30);
/// How much longer a text may become before it is cut into tokens. Published tokenizers make it up to twelve times as long.
const MOST_GROWTH: u64 = 1 << 10;
/// What is no longer than this, as long as it may become, can neither take much memory nor be worth a thread.
const SHORT: u64 = 1 << 10;

#[derive(Clone, Debug)]
pub struct Library {
    inner: Arc<Inner>,
    source: Arc<Source>,
    /// How much longer its normalizers may make a text.
    growth: u64,
}

impl Deref for Library {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl Library {
    /// What `make` makes of a tokenizer.json, in the same piece of work.
    pub fn read<T: Send + 'static>(
        path: &Path,
        make: impl FnOnce(Inner) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let bytes = outside::bytes(path, LONGEST_FILE).map_err(|error| error.to_string())?;
        let memory = READING + bytes.len().saturating_mul(READING_OF_A_BYTE);
        let read = move || parse(&bytes).and_then(make);
        let ceiling = Ceiling::new("reading the tokenizer", memory, READING_TIME);
        Source::default().bounded(ceiling, read).map_err(|error| match error {
            CeilingError::Panicked { .. } => {
                "a part of it is of no kind that tokenizers know".to_owned()
            }
            error => error.to_string(),
        })?
    }

    /// Looks at its normalizer once, for how much longer it may make a text.
    pub fn new(inner: Inner) -> Library {
        let growth = serde_json::to_value(inner.get_normalizer());
        let growth = growth.map_or(MOST_GROWTH, |normalizer| growth_of(&normalizer));
        Library { inner: Arc::new(inner), source: Arc::default(), growth }
    }

    /// What `work` makes of the tokenizer and a text of `length` bytes.
    ///
    /// # Errors
    /// A text that takes far more memory or time than any published tokenizer needs for it.
    pub fn bounded<T: Send + 'static>(
        &self,
        length: usize,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, CeilingError> {
        const WHAT: &str = "tokenising";
        if self.growth.saturating_mul(length as u64) <= SHORT {
            // A table of characters that is damaged makes the library panic.
            let done = catch_unwind(AssertUnwindSafe(|| work(&self.inner)));
            return done.map_err(|_| CeilingError::Panicked { what: WHAT });
        }
        let factor = u32::try_from(length).unwrap_or(u32::MAX);
        let ceiling = Ceiling::new(
            WHAT,
            USING + length.saturating_mul(USING_OF_A_BYTE),
            USING_TIME + USING_TIME_OF_A_BYTE.saturating_mul(factor),
        );
        let inner = self.inner.clone();
        self.source.bounded(ceiling, move || work(&inner))
    }

    /// The tokens of `text` alone.
    ///
    /// # Errors
    /// See [`Library::bounded`]; what the library cannot tokenise.
    pub fn encode_alone(&self, text: &str) -> Result<Encoding, String> {
        let owned = text.to_owned();
        let encoded = self.bounded(text.len(), move |inner| inner.encode_fast(owned, false));
        let encoded = encoded.map_err(|error| error.to_string())?;
        encoded.map_err(|error| error.to_string())
    }
}

/// What is no JSON never reaches the library, which panics over some files that are damaged. Without the padding and truncation that files
/// carry from where they were made; one that cuts a text by chance is refused.
fn parse(bytes: &[u8]) -> Result<Inner, String> {
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| error.to_string())?;
    #[expect(clippy::disallowed_methods, reason = "this is where they are bounded")]
    let mut inner = Inner::from_bytes(bytes).map_err(|error| error.to_string())?;
    inner.with_padding(None).with_truncation(None).map_err(|error| error.to_string())?;
    if let ModelWrapper::BPE(BPE { dropout: Some(dropout), .. }) = inner.get_model()
        && *dropout > 0.0
    {
        return Err(format!("its model has a dropout of {dropout}: it cuts texts by chance"));
    }
    let normalizer = serde_json::to_value(inner.get_normalizer());
    let growth = growth_of(&normalizer.map_err(|error| error.to_string())?);
    match growth > MOST_GROWTH {
        true => Err(format!(
            "its normalizers may make a text {growth} times as long; {MOST_GROWTH} times are taken"
        )),
        false => Ok(inner),
    }
}

/// How much longer a normalizer may make a text at most, as far as its file says.
fn growth_of(normalizer: &Value) -> u64 {
    let length = |text: &Value| text.as_str().unwrap_or_default().len() as u64;
    match normalizer["type"].as_str() {
        Some("Sequence") => {
            let parts = normalizer["normalizers"].as_array();
            parts.into_iter().flatten().map(growth_of).fold(1, u64::saturating_mul)
        }
        // A pattern may be of no length.
        Some("Replace") => match length(&normalizer["pattern"]["String"]) {
            0 => length(&normalizer["content"]) + 1,
            old => length(&normalizer["content"]).div_ceil(old).max(1),
        },
        // Of a text of one byte.
        Some("Prepend") => length(&normalizer["prepend"]) + 1,
        // The longest that Unicode knows: ﷺ is 18 characters.
        Some("NFKC" | "NFKD" | "Precompiled") => 12,
        Some("NFC" | "NFD" | "Lowercase" | "BertNormalizer") => 3,
        Some("ByteLevel") => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn how_much_longer_a_text_may_become_is_read_off_the_file() {
        let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        assert_eq!(growth_of(&spaces), 3);
        let prepend = json!({"type": "Prepend", "prepend": "▁"});
        assert_eq!(growth_of(&json!({"type": "Sequence", "normalizers": [prepend, spaces]})), 12);
        let regex = json!({"type": "Replace", "pattern": {"Regex": "a*"}, "content": "12345"});
        assert_eq!(growth_of(&regex), 6);
        let shorter = json!({"type": "Replace", "pattern": {"String": "abc"}, "content": "a"});
        assert_eq!(growth_of(&shorter), 1);
        let ten = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"});
        let fourteen = json!({"type": "Sequence", "normalizers": vec![ten; 14]});
        assert_eq!(growth_of(&fourteen), 10_u64.pow(14));
        assert_eq!(growth_of(&Value::Null), 1);
    }
}
