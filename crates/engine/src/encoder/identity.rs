//! What an encoder's numbers depend on, as records keep it.

use serde::{Deserialize, Serialize};

use super::card::{EncoderCard, EncoderOutput};
use super::folder::{Folder, TOKENIZER};
use super::{EncoderError, EncoderOptions};
use crate::digest::{digest_files, sha256_file, weights_digest};
use crate::ops::{Quantisation, StoredType};

/// Two models with equal identities give the same bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderIdentity {
    /// The card's name, or the folder's.
    pub name: String,
    pub output: EncoderOutput,
    pub normalised: bool,
    pub dims: usize,
    pub query: String,
    pub document: String,
    pub pair: bool,
    pub query_tokens: usize,
    pub document_tokens: usize,
    pub dtype: StoredType,
    pub quantisation: Quantisation,
    /// Of q4_k: the largest number of a block's scale. Older versions had 63, and their vectors are not those of today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_scale: Option<u8>,
    /// On machines of one kind the bits are equal: [`crate::ops::Device::kind`].
    pub device_kind: String,
    /// One sum of all weights: [`weights_digest`].
    pub weights_sha256: String,
    pub tokenizer_sha256: String,
    /// Of the model that reads queries, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_weights_sha256: Option<String>,
}

impl EncoderIdentity {
    /// Of vectors of `dims` numbers, where states have `width`, and of queries and documents that are cut at so many tokens; `queries` is the
    /// folder of the other model that reads these.
    pub(super) fn of(
        (folder, card): (&Folder, &EncoderCard),
        options: &EncoderOptions,
        [dims, width]: [usize; 2],
        [query_tokens, document_tokens]: [usize; 2],
        queries: Option<&Folder>,
    ) -> Result<Self, EncoderError> {
        let folder_name = || {
            let path = std::path::absolute(folder.path()).unwrap_or_default();
            path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        };
        let (precision, quantisation) = (options.precision(), options.quantisation);
        Ok(Self {
            name: options.known.map_or_else(folder_name, |known| known.name.to_owned()),
            output: card.output,
            normalised: card.normalised || dims < width,
            dims,
            query: card.query.clone(),
            document: card.document.clone(),
            pair: card.pair,
            query_tokens,
            document_tokens,
            dtype: precision.stored,
            quantisation,
            largest_scale: (quantisation == Quantisation::Q4K).then_some(u8::MAX),
            device_kind: options.device.kind([precision]),
            weights_sha256: weights_sha256(folder)?,
            tokenizer_sha256: sha256_file(&folder.file(TOKENIZER)?)?,
            query_weights_sha256: queries.map(weights_sha256).transpose()?,
        })
    }
}

fn weights_sha256(folder: &Folder) -> Result<String, EncoderError> {
    let name = folder.weight_file()?;
    let files = [(format!("0/{name}"), folder.path().join(name))];
    Ok(weights_digest(&digest_files(&files)?))
}
