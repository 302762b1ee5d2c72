//! What an encoder's numbers depend on, as records keep it.

use serde::{Deserialize, Serialize};

use super::EncoderError;
use super::card::KnownModel;
use super::folder::{Folder, TOKENIZER};
use super::form::Form;
use crate::digest::{digest_files, sha256_file, weights_digest};
use crate::ops::{Device, Precision, Quantisation};

/// Two models with equal identities give the same bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderIdentity {
    /// The card's name, or the folder's.
    pub name: String,
    /// `cls`, `mean` or `one-logit`.
    pub output: String,
    /// Whether vectors have length 1.
    pub normalised: bool,
    /// Numbers of a vector.
    pub dims: usize,
    /// What is read of a query; `{query}` stands for it.
    pub query: String,
    /// What is read of a document; `{title}` and `{text}` stand for its parts.
    pub document: String,
    /// Whether title and text are read as a pair.
    pub pair: bool,
    /// Tokens at which queries are cut, special tokens included.
    pub query_tokens: usize,
    /// The same of documents.
    pub document_tokens: usize,
    /// How weights are kept: f32 or bf16, and the quantisation.
    pub dtype: String,
    /// `none`, `q8_0`, `int8` or `q4_k`.
    pub quantisation: String,
    /// Of q4_k: the largest number of a block's scale. Older versions had 63, and their vectors are not those of today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_scale: Option<u8>,
    /// On machines of one kind the bits are equal: [`Device::kind`].
    pub device_kind: String,
    /// One sum of all weights: [`weights_digest`].
    pub weights_sha256: String,
    /// Of `tokenizer.json`.
    pub tokenizer_sha256: String,
    /// Of the model that reads queries, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_weights_sha256: Option<String>,
}

/// What is not in the form.
pub(super) struct Particulars<'a> {
    pub(super) known: Option<KnownModel>,
    /// Of a vector, and of a state.
    pub(super) dims: usize,
    pub(super) width: usize,
    pub(super) query_tokens: usize,
    pub(super) document_tokens: usize,
    pub(super) precision: Precision,
    pub(super) device: &'a Device,
    pub(super) queries: Option<&'a Folder>,
}

impl EncoderIdentity {
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn of(form: &Form, particulars: &Particulars<'_>) -> Result<Self, EncoderError> {
        let Particulars { known, dims, precision, device, .. } = *particulars;
        let folder_name = || {
            let path = std::path::absolute(form.folder.path()).unwrap_or_default();
            path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        };
        let queries = particulars.queries.map(weights_sha256);
        Ok(Self {
            name: known.map_or_else(folder_name, |known| known.name.to_owned()),
            output: form.card.output.name().to_owned(),
            normalised: form.card.normalised || dims < particulars.width,
            dims,
            query: form.card.query.clone(),
            document: form.card.document.clone(),
            pair: form.card.pair,
            query_tokens: particulars.query_tokens,
            document_tokens: particulars.document_tokens,
            dtype: precision.stored.to_string(),
            quantisation: precision.quantisation.to_string(),
            largest_scale: (precision.quantisation == Quantisation::Q4K).then_some(u8::MAX),
            device_kind: device.kind([precision]),
            weights_sha256: weights_sha256(&form.folder)?,
            tokenizer_sha256: sha256_file(&form.folder.file(TOKENIZER)?)?,
            query_weights_sha256: queries.transpose()?,
        })
    }
}

fn weights_sha256(folder: &Folder) -> Result<String, EncoderError> {
    let name = folder.weight_file()?;
    let files = [(format!("0/{name}"), folder.path().join(name))];
    Ok(weights_digest(&digest_files(&files)?))
}
