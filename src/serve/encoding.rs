//! The texts of a request to an encoder or a reranker: read within the limits, computed in turns with those of others, told to the audit trail.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::app::App;
use super::audit::{About, Pending, Who};
use super::completion::with_ignored;
use super::encoders::{Asked, ServedEncoder};
use super::error::{ApiError, Code};
use super::guard::{Caller, turn};
use super::models::LONGEST_TOKEN;
use super::queue::Place;
use super::request::fields::listed;
use super::response::events::cut;
use crate::audit::Input;
use crate::digest::Sum;
use crate::encoder::{EncoderError, Sequence};

/// The most texts of a request, and the most tokens of all of them: OpenAI's limits.
pub const MOST_TEXTS: usize = 2048;
pub const MOST_TOKENS: usize = 300_000;
/// The most bytes that are tokenised for a request: a query is, for each of its documents.
const MOST_BYTES: usize = MOST_TOKENS * LONGEST_TOKEN;

/// Bytes of the longest text that is tokenised for an encoder that reads so many tokens.
fn longest_text(max_tokens: usize) -> usize {
    max_tokens.saturating_mul(LONGEST_TOKEN).max(64 << 10)
}

/// The texts, as the model reads them.
pub struct Encoding {
    model: Arc<ServedEncoder>,
    asked: Asked,
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
        asked: Asked,
        field: &'static str,
        truncates: bool,
    ) -> Encoding {
        let mut sum = Sum::default();
        sum.update(format!("{} {asked:?}", model.fingerprint).as_bytes());
        Encoding {
            model: model.clone(),
            asked,
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
            ApiError::of(Code::ContextLengthExceeded, &place, message)
        };
        let too_many = |what: String| {
            let message =
                format!("{} has more than {what} up to {place}; send fewer at a time", self.field);
            Err(ApiError::invalid(self.field, message))
        };
        if bytes == 0 {
            return Err(ApiError::invalid(&place, format!("{place} is empty")));
        }
        let limit = self.model.reader.max_tokens();
        if bytes > longest_text(limit) {
            return Err(too_long(format!("{bytes} bytes"), limit));
        }
        self.bytes += bytes;
        if self.bytes > MOST_BYTES {
            return too_many(format!("{MOST_BYTES} bytes"));
        }
        let text = read().map_err(|error| match error {
            EncoderError::Ids { .. } => ApiError::invalid(
                &place,
                format!(
                    "{place}: {error}. Token ids are of the model's own tokenizer; texts are taken too (LangChain: check_embedding_ctx_length=False)"
                ),
            ),
            EncoderError::Text { .. } => ApiError::invalid(&place, format!("{place}: {error}")),
            other => ApiError::new(Code::Internal, other.to_string()),
        })?;
        if text.left_out() > 0 {
            if !self.truncates {
                let limit = text.tokens().len();
                let mut error = too_long(format!("{} tokens", limit + text.left_out()), limit);
                error.message += ", or say \"truncate\": true";
                return Err(error);
            }
            self.cut.push(self.texts.len());
        }
        self.tokens += text.tokens().len();
        if self.tokens > MOST_TOKENS {
            return too_many(format!("{MOST_TOKENS} tokens"));
        }
        self.sum.update(format!("{:?}{:?}", text.tokens(), text.segments()).as_bytes());
        self.texts.push(text);
        Ok(())
    }

    /// Takes a place in the queue.
    pub fn admit(mut self, app: &App, caller: Option<&Caller>) -> Result<Encoding, ApiError> {
        self.place = Some(app.queue()?.enter(1, self.tokens, caller)?);
        self.caller = turn(caller);
        Ok(self)
    }

    /// The numbers of each text, with their lines in the audit trail, which gets what `output` makes of them.
    ///
    /// # Errors
    /// Numbers that are not finite; a server that is cut off; a trail that cannot be written.
    pub async fn told(
        &self,
        app: &App,
        (who, path, input): (Who, &str, Input),
        output: impl FnOnce(&[Vec<f32>]) -> Value,
    ) -> Result<Vec<Vec<f32>>, ApiError> {
        let about = || About {
            model: self.model.id.clone(),
            fingerprint: self.model.fingerprint.clone(),
            request: self.sum.clone().finish(),
            usage: json!(self.used()),
            ..About::default()
        };
        let mut pending = Pending::begin(&app.audit, who, path, input, &about()).await?;
        let computed = self.compute(app).await;
        match &computed {
            Ok(numbers) => pending.done(About { output: output(numbers), ..about() }).await?,
            Err(error) => pending.failed(error, about()),
        }
        computed
    }

    async fn compute(&self, app: &App) -> Result<Vec<Vec<f32>>, ApiError> {
        let (began, mut phase) = (Instant::now(), app.phase.clone());
        let mut texts = self.texts.iter().cloned().peekable();
        let mut computed = Vec::with_capacity(texts.len());
        while let Some(first) = texts.next() {
            let (mut tokens, mut step) = (first.tokens().len(), vec![first]);
            let most = self.model.step_tokens;
            while let Some(next) = texts.next_if(|next| tokens + next.tokens().len() <= most) {
                tokens += next.tokens().len();
                step.push(next);
            }
            let (reader, asked) = (self.model.reader.clone(), self.asked);
            let place = (self.field, computed.len());
            let work = move || reader.compute(asked, &step, place);
            tokio::select! {
                numbers = self.model.pool.run(self.caller, work) => computed.extend(numbers?),
                () = cut(&mut phase) => return Err(ApiError::draining()),
            }
        }
        app.metrics.of_model(&self.model.id).encoded(self.tokens, began.elapsed());
        Ok(computed)
    }

    fn used(&self) -> UsageOfTexts {
        UsageOfTexts { prompt_tokens: self.tokens, total_tokens: self.tokens }
    }

    /// The response, with the headers that every response has.
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
        with_ignored(Json(body).into_response(), ignored)
    }
}
