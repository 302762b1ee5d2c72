//! The served encoders and rerankers, and the texts of requests to them: read within the limits, computed in turns with those of others, told
//! to the audit trail. Each model has a thread, which computes what waits for it a step at a time: callers take turns at the steps.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use super::app::App;
use super::audit::{About, Pending, Received};
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use super::models::{Entry, Kind, LONGEST_TOKEN};
use super::queue::{Place, Pool};
use super::request::fields::listed;
use super::response::events::cut;
use crate::diagnosis::Failure;
use crate::digest::{Sum, sha256};
use crate::encoder::{
    Encoder, EncoderError, EncoderOptions, Pair, Reranker, Sequence, Side, output_of,
};

/// The most texts of a request, and the most tokens: OpenAI's limits.
const MOST_TEXTS: usize = 2048;
const MOST_TOKENS: usize = 300_000;
/// The most bytes that are tokenised for a request: a query is, for each of its documents.
const MOST_BYTES: usize = MOST_TOKENS * LONGEST_TOKEN;

/// What turns texts into numbers.
enum Reader {
    Encoder(Box<Encoder>),
    Reranker(Box<Reranker>),
}

/// A loaded encoder or reranker.
pub struct ServedEncoder {
    pub entry: Entry,
    reader: Arc<Reader>,
    /// The most tokens that are computed in one go, but for a longer text.
    step_tokens: usize,
    pool: Arc<Pool>,
}

impl Reader {
    fn sequence(&self, asked: &Texts, text: &str) -> Result<Sequence, EncoderError> {
        match self {
            Reader::Encoder(encoder) => encoder.sequence(asked.side, text),
            Reader::Reranker(reranker) => {
                reranker.sequence(&Pair { query: asked.query, title: "", text })
            }
        }
    }

    /// The numbers of each text.
    fn compute(&self, side: Side, texts: &[Sequence]) -> Result<Vec<Vec<f32>>, ApiError> {
        let computed = match self {
            Reader::Encoder(encoder) => encoder.embed_sequences(side, texts),
            Reader::Reranker(reranker) => {
                let scores = reranker.score_sequences(texts);
                scores.map(|scores| scores.into_iter().map(|score| vec![score]).collect())
            }
        };
        computed.map_err(|error| ApiError::new(Code::INTERNAL, error.to_string()))
    }
}

impl ServedEncoder {
    /// Loads the model of a directory, and starts its thread. `notice` is what its licence requires wherever the model is used.
    ///
    /// # Errors
    /// A file that is missing or damaged; a machine without room.
    pub fn open(
        id: &str,
        options: &EncoderOptions,
        is_synthetic: bool,
        notice: Option<&str>,
    ) -> Result<ServedEncoder, Failure> {
        let output = output_of(&options.directory, options.known)?;
        let (kind, reader, identity) = if output.is_some_and(|output| output.is_score()) {
            let reranker = Reader::Reranker(Box::new(Reranker::open(options)?));
            (Kind::Reranker, reranker, Reranker::identity(options)?)
        } else {
            let encoder = Encoder::open(options)?;
            let identity = encoder.identity().clone();
            (Kind::Encoder, Reader::Encoder(Box::new(encoder)), identity)
        };
        let mut more = json!(identity);
        more["notice"] = notice.into();
        let sum = sha256(format!("{} {}", json!(identity), env!("CARGO_PKG_VERSION")));
        let own = (kind, format!("wr_{}", &sum[..16]));
        let most = match &reader {
            Reader::Encoder(encoder) => encoder.max_tokens(),
            Reader::Reranker(reranker) => reranker.max_tokens(),
        };
        Ok(ServedEncoder {
            entry: Entry::new(id, own, Some(most), is_synthetic, more),
            reader: Arc::new(reader),
            step_tokens: options.device.machine().prefill_rows(),
            pool: Pool::start("encoder", 1, || {})?,
        })
    }

    /// How many numbers a text becomes.
    pub fn width(&self) -> usize {
        match &*self.reader {
            Reader::Encoder(encoder) => encoder.width(),
            Reader::Reranker(_) => 1,
        }
    }
}

/// The texts of a request.
pub struct Texts<'a> {
    /// The field that they come in.
    pub field: &'static str,
    pub texts: Vec<&'a str>,
    /// Of no meaning for a reranker.
    pub side: Side,
    /// What a reranker reads beside each of them.
    pub query: &'a str,
}

/// The texts as the model reads them, with their place in the queue.
pub struct Encoding {
    model: Arc<ServedEncoder>,
    side: Side,
    texts: Vec<Sequence>,
    tokens: usize,
    /// The request's digest.
    request: String,
    _place: Place,
    /// Whose turn it is.
    pub caller: u64,
}

/// What texts become, and what every response says of it.
#[derive(Serialize)]
struct OfTexts<T> {
    object: &'static str,
    #[serde(flatten)]
    own: T,
    model: String,
    usage: Value,
    system_fingerprint: String,
    wardround: Value,
}

impl Encoding {
    /// Tokenises texts, and takes a place in the queue.
    ///
    /// # Errors
    /// A text that is empty, cannot be read, or is too long; more than a request may have; a full queue.
    pub fn read(
        app: &App,
        caller: Option<&Caller>,
        model: &Arc<ServedEncoder>,
        asked: &Texts,
    ) -> Result<Encoding, ApiError> {
        let Texts { field, ref texts, side, query } = *asked;
        let too_many = || {
            let most =
                format!("1 to {MOST_TEXTS} texts of {MOST_TOKENS} tokens or {MOST_BYTES} bytes");
            ApiError::invalid(field, format!("{field} is not {most}; send fewer at a time"))
        };
        let bytes: usize = texts.iter().map(|text| text.len() + query.len()).sum();
        if !(1..=MOST_TEXTS).contains(&texts.len()) || bytes > MOST_BYTES {
            return Err(too_many());
        }
        let (mut sequences, mut tokens, mut sum) = (Vec::new(), 0, Sum::default());
        sum.update(format!("{} {side:?}", model.entry.wardround.fingerprint).as_bytes());
        for (index, text) in texts.iter().enumerate() {
            let place = format!("{field}[{index}]");
            if text.trim().is_empty() {
                return Err(ApiError::invalid(&place, format!("{place} is empty")));
            }
            let sequence = model.reader.sequence(asked, text).map_err(|error| match error {
                EncoderError::Text { .. } => ApiError::invalid(&place, format!("{place}: {error}")),
                other => ApiError::new(Code::INTERNAL, other.to_string()),
            })?;
            let (kept, beyond) = (sequence.tokens().len(), sequence.left_out());
            if beyond > 0 {
                let (has, reads) = (kept + beyond, format!("{} reads {kept}", model.entry.id));
                let message = format!("{place} has {has} tokens; {reads}: send it in parts");
                return Err(ApiError::of(Code::CONTEXT_LENGTH_EXCEEDED, &place, message));
            }
            tokens += kept;
            if tokens > MOST_TOKENS {
                return Err(too_many());
            }
            sum.update(format!("{:?}{:?}", sequence.tokens(), sequence.segments()).as_bytes());
            sequences.push(sequence);
        }
        Ok(Encoding {
            model: model.clone(),
            side,
            texts: sequences,
            tokens,
            request: sum.finish(),
            _place: app.queue.enter(1, caller)?,
            caller: turn(caller),
        })
    }

    /// The numbers of each text, with their lines in the audit trail, which gets their sum.
    ///
    /// # Errors
    /// Numbers that are not finite; a server that is cut off; a trail that cannot be written.
    pub async fn told(&self, app: &App, received: Received) -> Result<Vec<Vec<f32>>, ApiError> {
        let about = || About {
            model: self.model.entry.id.clone(),
            fingerprint: self.model.entry.wardround.fingerprint.clone(),
            request: self.request.clone(),
            usage: self.used(),
            ..About::default()
        };
        let mut pending = Pending::begin(&app.audit, received, &about()).await?;
        let computed = self.compute(app).await;
        match &computed {
            Ok(numbers) => pending.done(About { output: output(numbers), ..about() }).await?,
            Err(error) => pending.failed(error.code.name, about()),
        }
        computed
    }

    async fn compute(&self, app: &App) -> Result<Vec<Vec<f32>>, ApiError> {
        let began = Instant::now();
        let mut texts = self.texts.iter().cloned().peekable();
        let mut computed = Vec::with_capacity(texts.len());
        while let Some(first) = texts.next() {
            let (mut tokens, mut step) = (first.tokens().len(), vec![first]);
            let most = self.model.step_tokens;
            while let Some(next) = texts.next_if(|next| tokens + next.tokens().len() <= most) {
                tokens += next.tokens().len();
                step.push(next);
            }
            let (reader, side) = (self.model.reader.clone(), self.side);
            let work = move || reader.compute(side, &step);
            tokio::select! {
                numbers = self.model.pool.run(self.caller, work) => computed.extend(numbers?),
                () = cut(app) => return Err(ApiError::draining()),
            }
        }
        app.metrics.ended(&self.model.entry.id, "stop", self.tokens, began.elapsed());
        Ok(computed)
    }

    fn used(&self) -> Value {
        json!({"prompt_tokens": self.tokens, "total_tokens": self.tokens})
    }

    pub fn respond(&self, own: impl Serialize, ignored: &[String]) -> Response {
        let (request, ignored) = (&self.request, listed(ignored));
        Json(OfTexts {
            object: "list",
            own,
            model: self.model.entry.id.clone(),
            usage: self.used(),
            system_fingerprint: self.model.entry.wardround.fingerprint.clone(),
            wardround: json!({"request": request, "ignored": ignored}),
        })
        .into_response()
    }
}

fn output(numbers: &[Vec<f32>]) -> Value {
    let mut sum = Sum::default();
    numbers.iter().for_each(|of_text| sum.update(&bytes_of(of_text)));
    json!({"texts": numbers.len(), "sha256": sum.finish()})
}

pub fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
