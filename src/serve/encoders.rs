//! The served encoders: they read texts within the limits, and compute them in turns. Each has a thread, which computes what waits for it a
//! step at a time: callers take turns at the steps.

use std::sync::Arc;

use serde_json::json;

use super::app::App;
use super::error::{ApiError, Code};
use super::models::{Entry, Kind, LONGEST_TOKEN};
use super::queue::Pool;
use super::response::events::cut;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::encoder::{Encoder, EncoderError, EncoderOptions, Sequence, Side};

/// The most texts of a request, and the most tokens: OpenAI's limits.
const MOST_TEXTS: usize = 2048;
const MOST_TOKENS: usize = 300_000;
/// The most bytes that are tokenised for a request.
const MOST_BYTES: usize = MOST_TOKENS * LONGEST_TOKEN;

/// A loaded encoder.
pub struct ServedEncoder {
    pub entry: Entry,
    encoder: Arc<Encoder>,
    /// The most tokens that are computed in one go, but for a longer text.
    step_tokens: usize,
    pool: Arc<Pool>,
}

impl ServedEncoder {
    /// Loads the model of a directory, and starts its thread. `notice` is what its licence requires wherever the model is used.
    ///
    /// # Errors
    /// A file that is missing or damaged; a reranker; a machine without room.
    pub fn open(
        id: &str,
        options: &EncoderOptions,
        is_synthetic: bool,
        notice: Option<&str>,
    ) -> Result<ServedEncoder, Failure> {
        let encoder = Encoder::open(options)?;
        let identity = json!(encoder.identity);
        let sum = sha256(format!("{identity} {}", env!("CARGO_PKG_VERSION")));
        let own = (Kind::Encoder, format!("wr_{}", &sum[..16]));
        let most = Some(encoder.identity.document_tokens);
        Ok(ServedEncoder {
            entry: Entry::new(id, own, most, is_synthetic, notice),
            encoder: Arc::new(encoder),
            step_tokens: options.device.machine().prefill_rows(),
            pool: Pool::start("encoder", 1, || {})?,
        })
    }

    /// How many numbers a text becomes.
    pub fn width(&self) -> usize {
        self.encoder.identity.dims
    }

    /// The texts of the field `input` as the model reads them.
    ///
    /// # Errors
    /// A text that is empty, cannot be read, or is too long; more than a request may have.
    pub fn read(&self, side: Side, texts: &[&str]) -> Result<Vec<Sequence>, ApiError> {
        let too_many = || {
            let most =
                format!("1 to {MOST_TEXTS} texts of {MOST_TOKENS} tokens or {MOST_BYTES} bytes");
            ApiError::invalid("input", format!("input is not {most}; send fewer at a time"))
        };
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if !(1..=MOST_TEXTS).contains(&texts.len()) || bytes > MOST_BYTES {
            return Err(too_many());
        }
        let (mut sequences, mut tokens) = (Vec::new(), 0);
        for (index, text) in texts.iter().enumerate() {
            let place = format!("input[{index}]");
            if text.trim().is_empty() {
                return Err(ApiError::invalid(&place, format!("{place} is empty")));
            }
            let sequence = self.encoder.sequence(side, text).map_err(|error| match error {
                EncoderError::Text { .. } => ApiError::invalid(&place, format!("{place}: {error}")),
                other => ApiError::new(Code::INTERNAL, other.to_string()),
            })?;
            let (kept, beyond) = (sequence.tokens.len(), sequence.left_out);
            if beyond > 0 {
                let (has, reads) = (kept + beyond, format!("{} reads {kept}", self.entry.id));
                let message = format!("{place} has {has} tokens; {reads}: send it in parts");
                return Err(ApiError::of(Code::CONTEXT_LENGTH_EXCEEDED, &place, message));
            }
            tokens += kept;
            if tokens > MOST_TOKENS {
                return Err(too_many());
            }
            sequences.push(sequence);
        }
        Ok(sequences)
    }

    /// The vector of each text, computed at the caller's turns.
    ///
    /// # Errors
    /// Numbers that are not finite; a server that is cut off.
    pub async fn vectors(
        &self,
        app: &App,
        caller: u64,
        side: Side,
        texts: &[Sequence],
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        let mut computed = Vec::with_capacity(texts.len());
        let mut left = texts.iter().cloned().peekable();
        while let Some(first) = left.next() {
            let (mut tokens, mut step) = (first.tokens.len(), vec![first]);
            let most = self.step_tokens;
            while let Some(next) = left.next_if(|next| tokens + next.tokens.len() <= most) {
                tokens += next.tokens.len();
                step.push(next);
            }
            let encoder = self.encoder.clone();
            let work = move || {
                let vectors = encoder.embed_sequences(side, &step);
                vectors.map_err(|error| ApiError::new(Code::INTERNAL, error.to_string()))
            };
            tokio::select! {
                vectors = self.pool.run(caller, work) => computed.extend(vectors?),
                () = cut(app) => return Err(ApiError::draining()),
            }
        }
        Ok(computed)
    }
}
