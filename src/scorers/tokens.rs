//! Text to token ids between `[CLS]` and `[SEP]`: by a tokenizer.json, or by GPT-2's vocab.json and merges.txt.

use std::path::PathBuf;

use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::{NFC, Sequence};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

use super::ScorerError;
use super::folder::Folder;

const TOKENIZER: &str = "tokenizer.json";
const VOCABULARY: &str = "vocab.json";
const MERGES: &str = "merges.txt";
pub(super) const CLS: &str = "[CLS]";
pub(super) const SEP: &str = "[SEP]";
pub(super) const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", CLS, SEP, "[MASK]"];

pub(super) struct Tokens {
    tokenizer: Tokenizer,
    cls: u32,
    sep: u32,
    max_tokens: usize,
}

impl Tokens {
    /// Of a model with `rows` word embeddings.
    pub(super) fn read(
        folder: Folder,
        rows: usize,
        max_tokens: usize,
    ) -> Result<Self, ScorerError> {
        let (path, tokenizer) = match folder.path(TOKENIZER).is_file() {
            true => whole(folder)?,
            false => byte_pairs(folder)?,
        };
        let unusable = |problem: String| ScorerError::Tokenizer {
            path: path.clone(),
            card: folder.card,
            problem,
        };
        let id = |token: &str| {
            let id = tokenizer.token_to_id(token);
            id.ok_or_else(|| unusable(format!("it has no {token}")))
        };
        let known = tokenizer.get_vocab(true).into_values().max();
        if let Some(id) = known.filter(|&id| id as usize >= rows) {
            return Err(unusable(format!(
                "it has a token {id}, but config.json says vocab_size = {rows}"
            )));
        }
        if max_tokens < 3 {
            return Err(unusable(format!(
                "{max_tokens} tokens leave no room for text"
            )));
        }
        Ok(Self {
            cls: id(CLS)?,
            sep: id(SEP)?,
            tokenizer,
            max_tokens,
        })
    }

    /// `[CLS]`, the text's first tokens, `[SEP]`.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, ScorerError> {
        let encoding = self.tokenizer.encode_fast(text, false);
        let encoding = encoding.map_err(|error| ScorerError::Text {
            length: text.len(),
            problem: error.to_string(),
        })?;
        let kept = encoding.get_ids().iter().take(self.max_tokens - 2);
        let first = std::iter::once(&self.cls);
        Ok(first.chain(kept).chain([&self.sep]).copied().collect())
    }

    /// Whether a token is `[CLS]` or `[SEP]`, wherever it stands.
    pub(super) fn is_mark(&self, id: u32) -> bool {
        id == self.cls || id == self.sep
    }
}

/// Without the padding and the cutting that published files carry. BERT's text is composed first (NFC), as the
/// tokenizer in Python does that bert-score uses; the one in the file does not, which moves Arabic marks.
fn whole(folder: Folder) -> Result<(PathBuf, Tokenizer), ScorerError> {
    let path = folder.file(TOKENIZER)?;
    let bytes = fs_err::read(&path)?;
    let tokenizer = Tokenizer::from_bytes(&bytes).and_then(|mut tokenizer| {
        tokenizer.with_padding(None).with_truncation(None)?;
        let normalizer = tokenizer.get_normalizer().cloned();
        if let Some(bert @ NormalizerWrapper::BertNormalizer(_)) = normalizer {
            let composed = Sequence::new(vec![NFC.into(), bert]);
            let _ = tokenizer.with_normalizer(Some(composed));
        }
        Ok(tokenizer)
    });
    match tokenizer {
        Ok(tokenizer) => Ok((path, tokenizer)),
        Err(error) => Err(unreadable(folder, path, &error.to_string())),
    }
}

/// As transformers' DeBERTa tokenizer: GPT-2's byte pairs, no space put before the text, and [MASK] takes the space
/// before it.
fn byte_pairs(folder: Folder) -> Result<(PathBuf, Tokenizer), ScorerError> {
    let (vocabulary, merges) = (folder.file(VOCABULARY)?, folder.file(MERGES)?);
    let bytes = BPE::read_file(&vocabulary.to_string_lossy(), &merges.to_string_lossy());
    let bytes = bytes.and_then(|(vocabulary, merges)| {
        BPE::builder().vocab_and_merges(vocabulary, merges).build()
    });
    let bytes =
        bytes.map_err(|error| unreadable(folder, vocabulary.clone(), &error.to_string()))?;
    let mut tokenizer = Tokenizer::new(bytes);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    let special = SPECIAL.map(|token| AddedToken::from(token, true).lstrip(token == "[MASK]"));
    let added = tokenizer.add_special_tokens(special);
    match added {
        Ok(_) => Ok((vocabulary, tokenizer)),
        Err(error) => Err(unreadable(folder, vocabulary, &error.to_string())),
    }
}

fn unreadable(folder: Folder, path: PathBuf, problem: &str) -> ScorerError {
    ScorerError::Tokenizer {
        path,
        card: folder.card,
        problem: problem.to_owned(),
    }
}
