//! Text to token ids between `[CLS]` and `[SEP]`: by a tokenizer.json, or by GPT-2's vocab.json and merges.txt.

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::{NFC, Sequence};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

use crate::encoder::EncoderError;
use crate::encoder::folder::{Folder, TOKENIZER};
use crate::tokenizer::Library;

const VOCABULARY: &str = "vocab.json";
const MERGES: &str = "merges.txt";
pub(super) const CLS: &str = "[CLS]";
pub(super) const SEP: &str = "[SEP]";
pub(super) const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", CLS, SEP, "[MASK]"];

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
        let id = |token: &str| {
            let id = tokenizer.token_to_id(token);
            id.ok_or_else(|| folder.bad_tokenizer(name, &format!("it has no {token}")))
        };
        folder.check_vocabulary(name, &tokenizer, rows)?;
        check_room(folder, name, max_tokens)?;
        Ok(Self { cls: id(CLS)?, sep: id(SEP)?, tokenizer: Library::new(tokenizer), max_tokens })
    }

    /// `[CLS]`, the text's first tokens, `[SEP]`.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let encoding = self.tokenizer.encode_alone(text);
        let encoding =
            encoding.map_err(|problem| EncoderError::Text { length: text.len(), problem })?;
        let kept = encoding.get_ids().iter().take(self.max_tokens - 2);
        let first = std::iter::once(&self.cls);
        Ok(first.chain(kept).chain([&self.sep]).copied().collect())
    }

    /// Whether a token is `[CLS]` or `[SEP]`, wherever it stands.
    pub(super) fn is_mark(&self, id: u32) -> bool {
        id == self.cls || id == self.sep
    }
}

/// An error where special tokens alone fill a text.
pub(super) fn check_room(
    folder: &Folder,
    name: &str,
    max_tokens: usize,
) -> Result<(), EncoderError> {
    match max_tokens < 3 {
        true => {
            let problem = format!("{max_tokens} tokens leave no room for text");
            Err(folder.bad_tokenizer(name, &problem))
        }
        false => Ok(()),
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

/// transformers' DeBERTa tokenizer: GPT-2's byte pairs, no space put before the text, and [MASK] takes the space
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
