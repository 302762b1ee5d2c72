//! Text to token ids between `[CLS]` and `[SEP]`: by a tokenizer.json, by GPT-2's vocab.json and merges.txt, or by SentencePiece's spm.model.

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::{NFC, Sequence};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

use super::sentencepiece::sentence_pieces;
use crate::encoder::EncoderError;
use crate::encoder::folder::{Folder, TOKENIZER};
use crate::tokenizer::Library;

const VOCABULARY: &str = "vocab.json";
const MERGES: &str = "merges.txt";
const PIECES: &str = "spm.model";
const CLS: &str = "[CLS]";
const SEP: &str = "[SEP]";
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", CLS, SEP, "[MASK]"];

pub(super) struct Tokens {
    tokenizer: Library,
    cls: u32,
    sep: u32,
    max_tokens: usize,
}

impl Tokens {
    /// Of a model with `rows` word embeddings.
    pub(super) fn read(
        folder: &Folder,
        rows: usize,
        max_tokens: usize,
    ) -> Result<Self, EncoderError> {
        let (name, tokenizer) = match folder.has(TOKENIZER) {
            true => (TOKENIZER, composing(folder.tokenizer()?)),
            false => (VOCABULARY, byte_pairs(folder)?),
        };
        Self::of(folder, name, tokenizer, rows, max_tokens)
    }

    /// BLEURT's. A special token that is spelt out in a text is that token, and what is between them is a text of its own.
    pub(super) fn of_pieces(
        folder: &Folder,
        rows: usize,
        max_tokens: usize,
    ) -> Result<Self, EncoderError> {
        let tokenizer = sentence_pieces(&folder.file(PIECES)?, &SPECIAL)
            .map_err(|problem| folder.bad_tokenizer(PIECES, &problem))?;
        Self::of(folder, PIECES, tokenizer, rows, max_tokens)
    }

    fn of(
        folder: &Folder,
        name: &str,
        tokenizer: Tokenizer,
        rows: usize,
        max_tokens: usize,
    ) -> Result<Self, EncoderError> {
        let id = |token: &str| {
            let id = tokenizer.token_to_id(token);
            id.ok_or_else(|| folder.bad_tokenizer(name, &format!("it has no {token}")))
        };
        folder.check_vocabulary(name, &tokenizer, rows)?;
        if max_tokens < 3 {
            let problem = format!("{max_tokens} tokens leave no room for text");
            return Err(folder.bad_tokenizer(name, &problem));
        }
        Ok(Self { cls: id(CLS)?, sep: id(SEP)?, tokenizer: Library::new(tokenizer), max_tokens })
    }

    /// `[CLS]`, the text's first tokens, `[SEP]`.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let mut ids = self.ids(text)?;
        ids.truncate(self.max_tokens - 2);
        Ok([vec![self.cls], ids, vec![self.sep]].concat())
    }

    /// `[CLS]` first `[SEP]` second `[SEP]`, and each token's segment. A pair that is too long loses the last token of its longer text,
    /// of two as long the second's, until it fits.
    pub(super) fn encode_pair(
        &self,
        first: &str,
        second: &str,
    ) -> Result<(Vec<u32>, Vec<u32>), EncoderError> {
        let (mut first, mut second) = (self.ids(first)?, self.ids(second)?);
        while first.len() + second.len() > self.max_tokens - 3 {
            match first.len() > second.len() {
                true => first.pop(),
                false => second.pop(),
            };
        }
        let mut segments = vec![0; first.len() + 2];
        segments.resize(first.len() + second.len() + 3, 1);
        let sep = vec![self.sep];
        Ok(([vec![self.cls], first, sep.clone(), second, sep].concat(), segments))
    }

    fn ids(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let encoding = self.tokenizer.encode_alone(text);
        let encoding =
            encoding.map_err(|problem| EncoderError::Text { length: text.len(), problem })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Whether a token is `[CLS]` or `[SEP]`, wherever it stands.
    pub(super) fn is_mark(&self, id: u32) -> bool {
        id == self.cls || id == self.sep
    }
}

/// BERT's text is composed first (NFC), as the tokenizer in Python does that bert-score uses; the one in the file does
/// not, which moves Arabic marks.
fn composing(mut tokenizer: Tokenizer) -> Tokenizer {
    let normalizer = tokenizer.get_normalizer().cloned();
    if let Some(bert @ NormalizerWrapper::BertNormalizer(_)) = normalizer {
        let composed = Sequence::new(vec![NFC.into(), bert]);
        let _ = tokenizer.with_normalizer(Some(composed));
    }
    tokenizer
}

/// transformers' DeBERTa tokenizer: GPT-2's byte pairs, no space put before the text, and `[MASK]` takes the space
/// before it.
fn byte_pairs(folder: &Folder) -> Result<Tokenizer, EncoderError> {
    let (vocabulary, merges) = (folder.file(VOCABULARY)?, folder.file(MERGES)?);
    let read = || {
        let (vocabulary, merges) =
            BPE::read_file(&vocabulary.to_string_lossy(), &merges.to_string_lossy())?;
        let bytes = BPE::builder().vocab_and_merges(vocabulary, merges).build()?;
        let mut tokenizer = Tokenizer::new(bytes);
        tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        let special = SPECIAL.map(|token| AddedToken::from(token, true).lstrip(token == "[MASK]"));
        tokenizer.add_special_tokens(special)?;
        Ok::<_, tokenizers::Error>(tokenizer)
    };
    read().map_err(|error| folder.bad_tokenizer(VOCABULARY, &error.to_string()))
}
