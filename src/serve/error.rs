//! The errors of the API: an HTTP status and an error object in OpenAI's form.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::engine::EngineError;
use crate::panel::PanelError;

/// The machine-readable code of an error, which determines its status and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    InvalidJson,
    MissingParameter,
    InvalidType,
    InvalidValue,
    UnsupportedParameter,
    ContextLengthExceeded,
    InvalidSchema,
    SchemaTooComplex,
    ImageUnsupported,
    StreamOptions,
    InvalidApiKey,
    Forbidden,
    HostNotAllowed,
    OriginNotAllowed,
    ModelNotFound,
    CaseNotFound,
    UnknownUrl,
    MethodNotAllowed,
    BodyTimeout,
    BodyTooLarge,
    UnsupportedMediaType,
    NoInlineText,
    QueueFull,
    BudgetFull,
    KeyLimit,
    TooManyFailures,
    Internal,
    Loading,
    Draining,
    EngineFailed,
    TooManyConnections,
    AuditFailed,
}

/// The status, type and name of a [`Code`].
struct Form {
    status: StatusCode,
    kind: &'static str,
    name: &'static str,
}

impl Code {
    fn form(self) -> Form {
        const INVALID: &str = "invalid_request_error";
        const NOT_FOUND: &str = "not_found_error";
        const PERMISSION: &str = "permission_error";
        const RATE: &str = "rate_limit_error";
        const UNAVAILABLE: &str = "unavailable_error";
        let form = |status: StatusCode, kind, name| Form { status, kind, name };
        let bad = |name| form(StatusCode::BAD_REQUEST, INVALID, name);
        let unavailable = |name| form(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, name);
        match self {
            Code::InvalidJson => bad("invalid_json"),
            Code::MissingParameter => bad("missing_parameter"),
            Code::InvalidType => bad("invalid_type"),
            Code::InvalidValue => bad("invalid_value"),
            Code::UnsupportedParameter => bad("unsupported_parameter"),
            Code::ContextLengthExceeded => bad("context_length_exceeded"),
            Code::InvalidSchema => bad("invalid_schema"),
            Code::SchemaTooComplex => bad("schema_too_complex"),
            Code::ImageUnsupported => bad("image_unsupported"),
            Code::StreamOptions => bad("stream_options"),
            Code::InvalidApiKey => {
                form(StatusCode::UNAUTHORIZED, "authentication_error", "invalid_api_key")
            }
            Code::Forbidden => form(StatusCode::FORBIDDEN, PERMISSION, "forbidden"),
            Code::HostNotAllowed => form(StatusCode::FORBIDDEN, PERMISSION, "host_not_allowed"),
            Code::OriginNotAllowed => form(StatusCode::FORBIDDEN, PERMISSION, "origin_not_allowed"),
            Code::ModelNotFound => form(StatusCode::NOT_FOUND, NOT_FOUND, "model_not_found"),
            Code::CaseNotFound => form(StatusCode::NOT_FOUND, NOT_FOUND, "case_not_found"),
            Code::UnknownUrl => form(StatusCode::NOT_FOUND, NOT_FOUND, "unknown_url"),
            Code::MethodNotAllowed => {
                form(StatusCode::METHOD_NOT_ALLOWED, NOT_FOUND, "method_not_allowed")
            }
            Code::BodyTimeout => form(StatusCode::REQUEST_TIMEOUT, "timeout_error", "body_timeout"),
            Code::BodyTooLarge => form(StatusCode::PAYLOAD_TOO_LARGE, INVALID, "body_too_large"),
            Code::UnsupportedMediaType => {
                form(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID, "unsupported_media_type")
            }
            Code::NoInlineText => form(StatusCode::UNPROCESSABLE_ENTITY, INVALID, "no_inline_text"),
            Code::QueueFull => form(StatusCode::TOO_MANY_REQUESTS, RATE, "queue_full"),
            Code::BudgetFull => form(StatusCode::TOO_MANY_REQUESTS, RATE, "budget_full"),
            Code::KeyLimit => form(StatusCode::TOO_MANY_REQUESTS, RATE, "key_limit"),
            Code::TooManyFailures => form(StatusCode::TOO_MANY_REQUESTS, RATE, "too_many_failures"),
            Code::Internal => form(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "internal"),
            Code::Loading => unavailable("loading"),
            Code::Draining => unavailable("draining"),
            Code::EngineFailed => unavailable("engine_failed"),
            Code::AuditFailed => unavailable("audit_failed"),
            Code::TooManyConnections => unavailable("too_many_connections"),
        }
    }

    /// The name in the error object and in metrics.
    pub fn name(self) -> &'static str {
        self.form().name
    }
}

/// An error response. Its message never contains a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    pub code: Code,
    pub message: String,
    /// The field at fault, such as `messages[1].content`.
    pub param: Option<String>,
    pub retry_after_s: Option<u64>,
}

/// The code of an [`ApiError`], attached to its response for the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Rejected(pub Code);

impl ApiError {
    pub fn new(code: Code, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into(), param: None, retry_after_s: None }
    }

    /// An error of one field of the request.
    pub fn of(code: Code, param: &str, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(param.to_owned()), ..ApiError::new(code, message) }
    }

    /// The server is shutting down.
    pub fn draining() -> ApiError {
        ApiError::new(Code::Draining, "the server is shutting down").retry_after(5)
    }

    /// The operating system gave no random numbers.
    pub fn no_random(error: getrandom::Error) -> ApiError {
        ApiError::new(Code::Internal, error.to_string())
    }

    /// With a `Retry-After` of so many seconds.
    pub fn retry_after(self, seconds: u64) -> ApiError {
        ApiError { retry_after_s: Some(seconds.clamp(1, 60)), ..self }
    }

    /// The same error of a request with `prompt` instead of `messages`.
    pub fn of_prompt(self) -> ApiError {
        let is_messages = self.param.as_deref() == Some("messages");
        let param = if is_messages { Some("prompt".to_owned()) } else { self.param };
        ApiError { param, ..self }
    }

    pub fn status(&self) -> StatusCode {
        self.code.form().status
    }

    /// The error object of a body or an event.
    pub fn json(&self) -> Value {
        let Form { kind, name, .. } = self.code.form();
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": name}})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(self.json())).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.code == Code::InvalidApiKey {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // SDKs retry after every 5xx: an internal error would fail again.
        if self.code == Code::Internal {
            let name = HeaderName::from_static("x-should-retry");
            headers.insert(name, HeaderValue::from_static("false"));
        }
        response.extensions_mut().insert(Rejected(self.code));
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
        let message = error.to_string();
        match error {
            EngineError::TooLong { prompt, max_tokens, context } => {
                too_long(prompt, max_tokens, context)
            }
            EngineError::PoolTooSmall { prompt, max_tokens, pages, .. } => {
                too_long(prompt, max_tokens, pages * crate::ops::PAGE)
            }
            EngineError::Grammar(_) => {
                ApiError::of(Code::InvalidSchema, "response_format", message)
            }
            EngineError::EmptyPrompt | EngineError::UnknownToken { .. } => {
                ApiError::of(Code::InvalidValue, "prompt", message)
            }
            EngineError::NothingToGenerate => ApiError::of(
                Code::InvalidValue,
                "max_tokens",
                "max_tokens is 0; only with echo or prompt_logprobs can nothing be generated",
            ),
            EngineError::Penalty { .. } => {
                ApiError::of(Code::InvalidValue, "repetition_penalty", message)
            }
            EngineError::NotFinite { .. } => ApiError::new(Code::Internal, message),
            EngineError::NoKnownLogprobs => {
                ApiError::of(Code::UnsupportedParameter, "prompt_logprobs", message)
            }
            EngineError::Start(_) | EngineError::Ops(_) | EngineError::Died { .. } => {
                ApiError::new(Code::EngineFailed, message).retry_after(10)
            }
        }
    }
}

/// A prompt that leaves no room for a completion. Clients recognise the beginning of the message.
pub fn too_long(prompt: usize, max_tokens: usize, context: usize) -> ApiError {
    ApiError::of(
        Code::ContextLengthExceeded,
        "messages",
        format!(
            "This model's maximum context length is {context} tokens; the prompt has {prompt} and up to {max_tokens} are to be generated. \
             Shorten the prompt, or start the server with a larger --context, and with --kv-tokens to hold it"
        ),
    )
}

impl From<PanelError> for ApiError {
    fn from(error: PanelError) -> ApiError {
        match error {
            PanelError::Engine(error) => error.into(),
            PanelError::PromptTooLong { prompt, context } => too_long(prompt, 1, context),
            PanelError::Chat(error) => {
                ApiError::of(Code::InvalidValue, "messages", error.to_string())
            }
            other => ApiError::new(Code::Internal, other.to_string()),
        }
    }
}
