//! Texts and pairs of texts as token ids, cut at a limit.

use tokenizers::{Encoding, PostProcessor, TruncationDirection};

use super::card::cut_at;
use super::folder::{Folder, TOKENIZER};
use super::{EncoderError, EncoderOptions};
use crate::model::BertConfig;
use crate::tokenizer::Library;

/// What a model reads of a text or a pair.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// As they are computed, special tokens included.
    pub tokens: Vec<u32>,
    /// 0 or 1: which text of a pair each token is of.
    pub segments: Vec<u32>,
    /// Tokens of the text that are not computed, for it is longer than the model's limit.
    pub left_out: usize,
}

/// A tokenizer with a limit, special tokens included.
pub(super) struct Tokens {
    tokenizer: Library,
    pub(super) max_tokens: usize,
}

impl Tokens {
    /// Of the model in `folder`; texts are cut at `limit` tokens, or where the options or the model's positions are over.
    pub(super) fn read(
        folder: &Folder,
        model: &BertConfig,
        limit: usize,
        options: &EncoderOptions,
    ) -> Result<Self, EncoderError> {
        let tokenizer = folder.tokenizer()?;
        folder.check_vocabulary(TOKENIZER, &tokenizer, model.vocab_size)?;
        let max_tokens = cut_at(limit, options.max_tokens, model.max_position_embeddings);
        Ok(Self { tokenizer: Library::new(tokenizer), max_tokens })
    }

    /// An error where a text may have no token: an encoder's tokenizer adds one at least.
    pub(super) fn expect_special(&self, folder: &Folder) -> Result<(), EncoderError> {
        match self.added(false) {
            0 => Err(folder.bad_tokenizer(TOKENIZER, "it adds no special tokens")),
            _ => Ok(()),
        }
    }

    pub(super) fn text(&self, text: &str) -> Result<Sequence, EncoderError> {
        let mut encoding = self.encode(text)?;
        let room = self.max_tokens.saturating_sub(self.added(false));
        let left_out = cut(&mut encoding, room);
        self.finish(text.len(), left_out, encoding, None)
    }

    /// Cut from the end of whichever is longer.
    pub(super) fn pair(&self, first: &str, second: &str) -> Result<Sequence, EncoderError> {
        let (mut one, mut two) = (self.encode(first)?, self.encode(second)?);
        let room = self.max_tokens.saturating_sub(self.added(true));
        let [first_room, second_room] = shares(one.len(), two.len(), room);
        let left_out = cut(&mut one, first_room) + cut(&mut two, second_room);
        self.finish(first.len() + second.len(), left_out, one, Some(two))
    }

    fn encode(&self, text: &str) -> Result<Encoding, EncoderError> {
        self.tokenizer.encode_alone(text).map_err(|problem| failed(text.len(), problem))
    }

    /// Special tokens around a text or a pair.
    fn added(&self, is_pair: bool) -> usize {
        let processor = self.tokenizer.get_post_processor();
        processor.map_or(0, |processor| processor.added_tokens(is_pair))
    }

    fn finish(
        &self,
        length: usize,
        left_out: usize,
        first: Encoding,
        second: Option<Encoding>,
    ) -> Result<Sequence, EncoderError> {
        let encoding = self.tokenizer.post_process(first, second, true);
        let encoding = encoding.map_err(|error| failed(length, error.to_string()))?;
        match encoding.len() {
            count if (1..=self.max_tokens).contains(&count) => Ok(Sequence {
                tokens: encoding.get_ids().to_vec(),
                segments: encoding.get_type_ids().to_vec(),
                left_out,
            }),
            count => Err(failed(length, format!("{count} tokens, not 1 to {}", self.max_tokens))),
        }
    }
}

fn failed(length: usize, problem: String) -> EncoderError {
    EncoderError::Text { length, problem }
}

/// Tokens beyond `room`, which are taken away.
fn cut(encoding: &mut Encoding, room: usize) -> usize {
    let left_out = encoding.len().saturating_sub(room);
    if left_out > 0 {
        encoding.truncate(room, 0, TruncationDirection::Right);
    }
    left_out
}

/// What is left of two lengths in `room`: the longer one gives until they are equal, then both; an odd token stays with the
/// one that was longer, or the second.
fn shares(first: usize, second: usize, room: usize) -> [usize; 2] {
    if first + second <= room {
        return [first, second];
    }
    let shorter = first.min(second).min(room / 2);
    match first > second {
        true => [room - shorter, shorter],
        false => [shorter, room - shorter],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_part_of_a_pair_gives_first() {
        for (lengths, expected) in [
            ([3, 4], [3, 4]),
            ([3, 40], [3, 18]),
            ([40, 3], [18, 3]),
            ([30, 40], [10, 11]),
            ([40, 30], [11, 10]),
            ([30, 30], [10, 11]),
            ([0, 40], [0, 21]),
        ] {
            assert_eq!(shares(lengths[0], lengths[1], 21), expected, "{lengths:?}");
        }
        assert_eq!(shares(5, 5, 0), [0, 0]);
    }
}
