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
use super::models::{Kind, LONGEST_TOKEN, ModelEntry, name_of};
use super::queue::{Place, Pool};
use super::request::fields::listed;
use super::response::events::cut;
use crate::diagnosis::Failure;
use crate::digest::{Sum, sha256};
use crate::encoder::{
    Encoder, EncoderError, EncoderIdentity, EncoderOptions, Reranker, Sequence, Side, output_of,
};

/// The most texts of a request, and the most tokens: OpenAI's limits.
const MOST_TEXTS: usize = 2048;
pub const MOST_TOKENS: usize = 300_000;
/// The most bytes that are tokenised for a request: a query is, for each of its documents.
const MOST_BYTES: usize = MOST_TOKENS * LONGEST_TOKEN;

/// What turns texts into numbers.
pub enum Reader {
    Encoder(Box<Encoder>),
    Reranker(Box<Reranker>),
}

/// A loaded encoder or reranker.
pub struct ServedEncoder {
    pub id: String,
    pub reader: Arc<Reader>,
    /// Models with equal fingerprints answer equal requests with equal bytes.
    pub fingerprint: String,
    /// In the list of models.
    pub entry: ModelEntry,
    /// The most tokens that are computed in one go, but for a longer text.
    step_tokens: usize,
    pool: Arc<Pool>,
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
    fn compute(
        &self,
        side: Side,
        texts: &[Sequence],
        (field, first): (&str, usize),
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        let computed = match self {
            Reader::Encoder(encoder) => encoder.embed_sequences(side, texts),
            Reader::Reranker(reranker) => {
                let scores = reranker.score_sequences(texts);
                scores.map(|scores| scores.into_iter().map(|score| vec![score]).collect())
            }
        };
        computed.map_err(|error| match error {
            EncoderError::NotFinite { place, .. } => {
                let place = format!("{field}[{}]", first + place - 1);
                let problem = "the model computed numbers that are not finite (NaN or infinity) of";
                ApiError::of(Code::INTERNAL, &place, format!("{problem} {place}"))
            }
            other => ApiError::new(Code::INTERNAL, other.to_string()),
        })
    }
}

impl ServedEncoder {
    /// Loads the model of a directory, and starts its thread. `notice` is what its licence requires wherever the model is used.
    ///
    /// # Errors
    /// A file that is missing or damaged; a machine without room.
    pub fn open(
        id: String,
        options: &EncoderOptions,
        is_synthetic: bool,
        notice: Option<&str>,
    ) -> Result<ServedEncoder, Failure> {
        let output = output_of(&options.directory, options.known)?;
        let (reader, mut identity) = match output.is_some_and(|output| output.is_score()) {
            true => {
                (Reader::Reranker(Box::new(Reranker::open(options)?)), Reranker::identity(options)?)
            }
            false => {
                let encoder = Encoder::open(options)?;
                let identity = encoder.identity().clone();
                (Reader::Encoder(Box::new(encoder)), identity)
            }
        };
        let name = std::mem::take(&mut identity.name);
        let sum = sha256(format!("{} {}", json!(identity), env!("CARGO_PKG_VERSION")));
        let fingerprint = format!("wr_{}", &sum[..16]);
        let mut own = json!(EncoderIdentity { name, ..identity });
        own["kind"] = json!(reader.kind());
        own["fingerprint"] = fingerprint.as_str().into();
        own["synthetic"] = is_synthetic.into();
        own["notice"] = notice.into();
        let root = name_of(&options.directory);
        Ok(ServedEncoder {
            entry: ModelEntry::new(&id, root, Some(reader.max_tokens()), own),
            id,
            reader: Arc::new(reader),
            fingerprint,
            step_tokens: options.device.machine().prefill_rows(),
            pool: Pool::start("encoder", 1, || {})?,
        })
    }
}

/// The texts of a request.
pub struct Texts<'a> {
    /// Of no meaning for a reranker.
    pub side: Side,
    /// The field that they come in.
    pub field: &'static str,
    pub texts: Vec<&'a str>,
    /// Bytes of what is read beside each of them.
    pub beside: usize,
    /// Whether those that are too long are cut.
    pub truncates: bool,
}

/// The texts as the model reads them, with their place in the queue.
pub struct Encoding {
    model: Arc<ServedEncoder>,
    side: Side,
    field: &'static str,
    texts: Vec<Sequence>,
    tokens: usize,
    /// The places of texts that were cut.
    cut: Vec<usize>,
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
    /// Tokenises texts, each by `read`, and takes a place in the queue.
    ///
    /// # Errors
    /// A text that is empty, cannot be read, or is too long; more than a request may have; a full queue.
    pub fn read(
        app: &App,
        caller: Option<&Caller>,
        model: &Arc<ServedEncoder>,
        asked: &Texts,
        read: impl Fn(&str) -> Result<Sequence, EncoderError>,
    ) -> Result<Encoding, ApiError> {
        let Texts { side, field, ref texts, beside, truncates } = *asked;
        let too_many = || {
            let most =
                format!("1 to {MOST_TEXTS} texts of {MOST_TOKENS} tokens or {MOST_BYTES} bytes");
            Err(ApiError::invalid(field, format!("{field} is not {most}; send fewer at a time")))
        };
        if !(1..=MOST_TEXTS).contains(&texts.len()) {
            return too_many();
        }
        let limit = model.reader.max_tokens();
        let (mut sequences, mut cut) = (Vec::with_capacity(texts.len()), Vec::new());
        let (mut bytes, mut tokens, mut sum) = (0, 0, Sum::default());
        sum.update(format!("{} {side:?}", model.fingerprint).as_bytes());
        for (index, text) in texts.iter().enumerate() {
            let place = format!("{field}[{index}]");
            let too_long = |has: String, limit: usize| {
                let reads = format!("{} reads {limit} tokens", model.id);
                let message = format!("{place} has {has}; {reads}: send it in parts");
                Err(ApiError::of(Code::CONTEXT_LENGTH_EXCEEDED, &place, message))
            };
            let own = text.len() + beside;
            if text.trim().is_empty() {
                return Err(ApiError::invalid(&place, format!("{place} is empty")));
            }
            // Before it is tokenised, which takes time.
            if own > limit.saturating_mul(LONGEST_TOKEN).max(64 << 10) {
                return too_long(format!("{own} bytes"), limit);
            }
            bytes += own;
            if bytes > MOST_BYTES {
                return too_many();
            }
            let sequence = read(text).map_err(|error| match error {
                EncoderError::Text { .. } => ApiError::invalid(&place, format!("{place}: {error}")),
                other => ApiError::new(Code::INTERNAL, other.to_string()),
            })?;
            let kept = sequence.tokens().len();
            if sequence.left_out() > 0 {
                if !truncates {
                    return too_long(format!("{} tokens", kept + sequence.left_out()), kept);
                }
                cut.push(index);
            }
            tokens += kept;
            if tokens > MOST_TOKENS {
                return too_many();
            }
            sum.update(format!("{:?}{:?}", sequence.tokens(), sequence.segments()).as_bytes());
            sequences.push(sequence);
        }
        Ok(Encoding {
            model: model.clone(),
            side,
            field,
            texts: sequences,
            tokens,
            cut,
            request: sum.finish(),
            _place: app.queue()?.enter(1, tokens, caller)?,
            caller: turn(caller),
        })
    }

    /// The numbers of each text, with their lines in the audit trail, which gets their sum.
    ///
    /// # Errors
    /// Numbers that are not finite; a server that is cut off; a trail that cannot be written.
    pub async fn told(&self, app: &App, received: Received) -> Result<Vec<Vec<f32>>, ApiError> {
        let about = || About {
            model: self.model.id.clone(),
            fingerprint: self.model.fingerprint.clone(),
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
            let place = (self.field, computed.len());
            let work = move || reader.compute(side, &step, place);
            tokio::select! {
                numbers = self.model.pool.run(self.caller, work) => computed.extend(numbers?),
                () = cut(app) => return Err(ApiError::draining()),
            }
        }
        app.metrics.ended(&self.model.id, "stop", self.tokens, began.elapsed());
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
            model: self.model.id.clone(),
            usage: self.used(),
            system_fingerprint: self.model.fingerprint.clone(),
            wardround: json!({"request": request, "truncated": self.cut, "ignored": ignored}),
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
