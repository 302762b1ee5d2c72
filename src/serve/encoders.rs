//! The served encoders and rerankers, and the texts of requests to them: read within the limits, computed in turns with those of others, told
//! to the audit trail. Each model has a thread, which computes what waits for it a step at a time: callers take turns at the steps.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
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

/// The most tokens of a request: OpenAI's limit.
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
    pub identity: EncoderIdentity,
    /// Models with equal fingerprints answer equal requests with equal bytes.
    pub fingerprint: String,
    /// The name of its directory.
    root: Option<String>,
    pub is_synthetic: bool,
    /// The notice that its licence requires wherever the model is used.
    pub notice: Option<&'static str>,
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
        let mut own = json!(identity);
        own["kind"] = json!(reader.kind());
        own["fingerprint"] = self.fingerprint.as_str().into();
        own["synthetic"] = self.is_synthetic.into();
        own["notice"] = self.notice.into();
        ModelEntry::new(id, root.clone(), Some(reader.max_tokens()), own)
    }
}

/// Bytes of the longest text that is tokenised for an encoder that reads so many tokens.
fn longest_text(max_tokens: usize) -> usize {
    max_tokens.saturating_mul(LONGEST_TOKEN).max(64 << 10)
}

/// The texts, as the model reads them.
pub struct Encoding {
    model: Arc<ServedEncoder>,
    /// Of no meaning for a reranker.
    side: Side,
    /// The field that the texts come in.
    field: &'static str,
    /// Whether texts that are too long are cut.
    truncates: bool,
    texts: Vec<Sequence>,
    bytes: usize,
    pub tokens: usize,
    /// The places of texts that were cut.
    cut: Vec<usize>,
    sum: Sum,
    place: Option<Place>,
    /// Whose turn it is.
    pub caller: u64,
}

/// What texts become, and what every response says of it.
#[derive(Serialize, JsonSchema)]
pub struct OfTexts<T> {
    object: &'static str,
    #[serde(flatten)]
    own: T,
    model: String,
    usage: UsageOfTexts,
    system_fingerprint: String,
    wardround: OwnOfTexts,
}

#[derive(Serialize, JsonSchema)]
struct UsageOfTexts {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// What no other server's responses have: the request's digest, the texts that were cut, and the fields without effect.
#[derive(Serialize, JsonSchema)]
struct OwnOfTexts {
    request: String,
    truncated: Vec<usize>,
    ignored: Vec<String>,
}

impl Encoding {
    pub fn new(
        model: &Arc<ServedEncoder>,
        side: Side,
        field: &'static str,
        truncates: bool,
    ) -> Encoding {
        let mut sum = Sum::default();
        sum.update(format!("{} {side:?}", model.fingerprint).as_bytes());
        Encoding {
            model: model.clone(),
            side,
            field,
            truncates,
            texts: Vec::new(),
            bytes: 0,
            tokens: 0,
            cut: Vec::new(),
            sum,
            place: None,
            caller: 0,
        }
    }

    /// Adds the next text, of so many bytes, which `read` tokenises unless it is empty or much too long.
    ///
    /// # Errors
    /// A text that is empty, cannot be read, or is too long; more tokens than a request may have.
    pub fn add(
        &mut self,
        bytes: usize,
        read: impl FnOnce() -> Result<Sequence, EncoderError>,
    ) -> Result<(), ApiError> {
        let place = format!("{}[{}]", self.field, self.texts.len());
        let too_long = |has: String, limit: usize| {
            let id = &self.model.id;
            let message = format!("{place} has {has}; {id} reads {limit} tokens: send it in parts");
            Err(ApiError::of(Code::ContextLengthExceeded, &place, message))
        };
        let limit = self.model.reader.max_tokens();
        if bytes == 0 {
            return Err(ApiError::invalid(&place, format!("{place} is empty")));
        }
        if bytes > longest_text(limit) {
            return too_long(format!("{bytes} bytes"), limit);
        }
        self.bytes += bytes;
        if self.bytes <= MOST_BYTES {
            let text = read().map_err(|error| match error {
                EncoderError::Text { .. } => ApiError::invalid(&place, format!("{place}: {error}")),
                other => ApiError::new(Code::Internal, other.to_string()),
            })?;
            if text.left_out() > 0 {
                if !self.truncates {
                    let limit = text.tokens().len();
                    return too_long(format!("{} tokens", limit + text.left_out()), limit);
                }
                self.cut.push(self.texts.len());
            }
            self.tokens += text.tokens().len();
            self.sum.update(format!("{:?}{:?}", text.tokens(), text.segments()).as_bytes());
            self.texts.push(text);
        }
        if self.bytes > MOST_BYTES || self.tokens > MOST_TOKENS {
            let most = format!("{MOST_TOKENS} tokens or {MOST_BYTES} bytes");
            let message = format!("{} has more than {most}; send fewer at a time", self.field);
            return Err(ApiError::invalid(self.field, message));
        }
        Ok(())
    }

    /// Takes a place in the queue.
    pub fn admit(mut self, app: &App, caller: Option<&Caller>) -> Result<Encoding, ApiError> {
        self.place = Some(app.queue()?.enter(1, self.tokens, caller)?);
        self.caller = turn(caller);
        Ok(self)
    }

    /// The numbers of each text, with their lines in the audit trail, which gets their sum.
    ///
    /// # Errors
    /// Numbers that are not finite; a server that is cut off; a trail that cannot be written.
    pub async fn told(&self, app: &App, received: Received) -> Result<Vec<Vec<f32>>, ApiError> {
        let about = || About {
            model: self.model.id.clone(),
            fingerprint: self.model.fingerprint.clone(),
            request: self.sum.clone().finish(),
            usage: json!(self.used()),
            ..About::default()
        };
        let mut pending = Pending::begin(&app.audit, received, &about()).await?;
        let computed = self.compute(app).await;
        match &computed {
            Ok(numbers) => pending.done(About { output: output(numbers), ..about() }).await?,
            Err(error) => pending.failed(error.code.name(), about()),
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
        app.metrics.of_model(&self.model.id).encoded(self.tokens, began.elapsed());
        Ok(computed)
    }

    fn used(&self) -> UsageOfTexts {
        UsageOfTexts { prompt_tokens: self.tokens, total_tokens: self.tokens }
    }

    pub fn respond(&self, own: impl Serialize, ignored: &[String]) -> Response {
        let (request, truncated) = (self.sum.clone().finish(), self.cut.clone());
        let body = OfTexts {
            object: "list",
            own,
            model: self.model.id.clone(),
            usage: self.used(),
            system_fingerprint: self.model.fingerprint.clone(),
            wardround: OwnOfTexts { request, truncated, ignored: listed(ignored) },
        };
        Json(body).into_response()
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
