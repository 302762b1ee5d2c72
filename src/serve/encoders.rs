//! The served encoders and rerankers. Each has a thread, which computes what waits for it a step at a time: callers take turns at the steps.

use std::sync::Arc;

use serde_json::json;

use super::error::{ApiError, Code};
use super::models::{Kind, ModelEntry, name_of};
use super::pool::Pool;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::{
    Encoder, EncoderError, EncoderIdentity, EncoderOptions, Reranker, Sequence, Side, output_of,
};

/// What turns texts into numbers.
pub enum Reader {
    Encoder(Box<Encoder>),
    Reranker(Box<Reranker>),
}

/// A loaded encoder or reranker.
pub struct ServedEncoder {
    pub id: String,
    pub reader: Arc<Reader>,
    pub identity: EncoderIdentity,
    /// Models with equal fingerprints answer equal requests with equal bytes.
    pub fingerprint: String,
    /// The name of its directory.
    root: Option<String>,
    pub is_synthetic: bool,
    /// The notice that its licence requires wherever the model is used.
    pub notice: Option<&'static str>,
    /// The most tokens that are computed in one go, but for a longer text.
    pub step_tokens: usize,
    pub pool: Arc<Pool>,
}

/// How texts are computed; of no meaning for a reranker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    pub side: Side,
    /// Numbers of a vector.
    pub dims: usize,
}

impl Reader {
    pub fn kind(&self) -> Kind {
        match self {
            Reader::Encoder(_) => Kind::Encoder,
            Reader::Reranker(_) => Kind::Reranker,
        }
    }

    /// The most tokens of a document, special ones included.
    pub fn max_tokens(&self) -> usize {
        match self {
            Reader::Encoder(encoder) => encoder.max_tokens(),
            Reader::Reranker(reranker) => reranker.max_tokens(),
        }
    }

    /// The numbers of each text, of which the first has this place in its field.
    pub fn compute(
        &self,
        asked: Asked,
        texts: &[Sequence],
        (field, first): (&str, usize),
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        let computed = match self {
            Reader::Encoder(encoder) => encoder.embed_sequences(asked.side, texts, asked.dims),
            Reader::Reranker(reranker) => {
                let scores = reranker.score_sequences(texts);
                scores.map(|scores| scores.into_iter().map(|score| vec![score]).collect())
            }
        };
        computed.map_err(|error| match error {
            EncoderError::NotFinite { place, .. } => {
                let place = format!("{field}[{}]", first + place - 1);
                let problem = "the model computed numbers that are not finite (NaN or infinity) of";
                ApiError::of(Code::Internal, &place, format!("{problem} {place}"))
            }
            other => ApiError::new(Code::Internal, other.to_string()),
        })
    }
}

impl ServedEncoder {
    /// Loads the model of a directory, and starts its thread.
    ///
    /// # Errors
    /// A file that is missing or damaged; a machine without room.
    pub fn open(id: String, options: &EncoderOptions) -> Result<ServedEncoder, Failure> {
        let output = output_of(&options.directory, options.known)?;
        let (reader, identity) = match output.is_some_and(|output| output.is_score()) {
            true => {
                (Reader::Reranker(Box::new(Reranker::open(options)?)), Reranker::identity(options)?)
            }
            false => {
                let encoder = Encoder::open(options)?;
                let identity = encoder.identity().clone();
                (Reader::Encoder(Box::new(encoder)), identity)
            }
        };
        let mut nameless = identity.clone();
        nameless.name.clear();
        let sum = sha256(format!("{} {}", json!(nameless), env!("CARGO_PKG_VERSION")));
        Ok(ServedEncoder {
            id,
            reader: Arc::new(reader),
            identity,
            fingerprint: format!("wr_{}", &sum[..16]),
            root: name_of(&options.directory),
            is_synthetic: false,
            notice: None,
            step_tokens: options.device.machine().prefill_rows(),
            pool: Pool::start("encoder", 1, || {})?,
        })
    }

    /// The entry in the list of models.
    pub fn entry(&self) -> ModelEntry {
        let ServedEncoder { id, reader, identity, root, .. } = self;
        let mut own = json!({
            "kind": reader.kind(),
            "output": identity.output,
            "document": identity.document,
            "weights_sha256": identity.weights_sha256,
            "tokenizer_sha256": identity.tokenizer_sha256,
            "dtype": identity.dtype,
            "quantisation": identity.quantisation,
            "device_kind": identity.device_kind,
            "fingerprint": self.fingerprint,
            "synthetic": self.is_synthetic,
            "notice": self.notice,
        });
        if let Reader::Encoder(encoder) = &**reader {
            own["dimensions"] = encoder.widths().into();
            own["normalised"] = identity.normalised.into();
            own["query"] = identity.query.as_str().into();
        }
        ModelEntry::new(id, root.clone(), Some(reader.max_tokens()), own)
    }
}
