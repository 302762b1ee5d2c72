//! Texts and pairs of texts as token ids, cut at a limit.

use tokenizers::{Tokenizer, TruncationParams, TruncationStrategy};

use super::EncoderError;
use super::folder::{Folder, TOKENIZER};

/// What a model reads.
pub(super) struct Sequence {
    pub(super) tokens: Vec<u32>,
    /// 0 or 1: which text of a pair each token is of.
    pub(super) segments: Vec<u32>,
    /// Whether tokens were left out.
    pub(super) is_cut: bool,
}

/// A tokenizer with a limit, special tokens included.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    max_tokens: usize,
}

impl Tokens {
    /// Of a model with `rows` word embeddings.
    pub(super) fn read(
        folder: &Folder,
        rows: usize,
        max_tokens: usize,
    ) -> Result<Self, EncoderError> {
        let unusable = |problem: &str| folder.bad_tokenizer(TOKENIZER, problem);
        let mut tokenizer = folder.tokenizer()?;
        let truncation = TruncationParams {
            max_length: max_tokens,
            strategy: TruncationStrategy::LongestFirst,
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|error| unusable(&error.to_string()))?;
        folder.check_vocabulary(TOKENIZER, &tokenizer, rows)?;
        match tokenizer.encode_fast("", true) {
            Ok(empty) if !empty.is_empty() => Ok(Self { tokenizer, max_tokens }),
            Ok(_) => Err(unusable("it adds no special tokens")),
            Err(error) => Err(unusable(&error.to_string())),
        }
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    pub(super) fn text(&self, text: &str) -> Result<Sequence, EncoderError> {
        self.sequence(text.len(), self.tokenizer.encode_fast(text, true))
    }

    /// Cut from the end of whichever is longer.
    pub(super) fn pair(&self, first: &str, second: &str) -> Result<Sequence, EncoderError> {
        let length = first.len() + second.len();
        self.sequence(length, self.tokenizer.encode_fast((first, second), true))
    }

    fn sequence(
        &self,
        length: usize,
        encoding: tokenizers::Result<tokenizers::Encoding>,
    ) -> Result<Sequence, EncoderError> {
        let failed = |problem: String| EncoderError::Text { length, problem };
        let encoding = encoding.map_err(|error| failed(error.to_string()))?;
        if encoding.is_empty() || encoding.len() > self.max_tokens {
            return Err(failed(format!("{} tokens, not 1 to {}", encoding.len(), self.max_tokens)));
        }
        Ok(Sequence {
            tokens: encoding.get_ids().to_vec(),
            segments: encoding.get_type_ids().to_vec(),
            is_cut: !encoding.get_overflowing().is_empty(),
        })
    }
}
