//! The errors of the API: an HTTP status and an error object in OpenAI's form.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::engine::EngineError;
use crate::panel::PanelError;

/// Defines [`Code`] and what each stands for: the HTTP status, the type and the name.
macro_rules! codes {
    ($($code:ident = $status:ident $kind:literal $name:literal,)*) => {
        /// The machine-readable code of an error, which determines its status and type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($code,)*
        }

        impl Code {
            fn status(self) -> StatusCode {
                match self {
                    $(Code::$code => StatusCode::$status,)*
                }
            }

            fn kind(self) -> &'static str {
                match self {
                    $(Code::$code => $kind,)*
                }
            }

            /// The name in the error object and in metrics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    InvalidJson = BAD_REQUEST "invalid_request_error" "invalid_json",
    MissingParameter = BAD_REQUEST "invalid_request_error" "missing_parameter",
    InvalidType = BAD_REQUEST "invalid_request_error" "invalid_type",
    InvalidValue = BAD_REQUEST "invalid_request_error" "invalid_value",
    UnsupportedParameter = BAD_REQUEST "invalid_request_error" "unsupported_parameter",
    ContextLengthExceeded = BAD_REQUEST "invalid_request_error" "context_length_exceeded",
    InvalidSchema = BAD_REQUEST "invalid_request_error" "invalid_schema",
    SchemaTooComplex = BAD_REQUEST "invalid_request_error" "schema_too_complex",
    ImageUnsupported = BAD_REQUEST "invalid_request_error" "image_unsupported",
    StreamOptions = BAD_REQUEST "invalid_request_error" "stream_options",
    InvalidApiKey = UNAUTHORIZED "authentication_error" "invalid_api_key",
    Forbidden = FORBIDDEN "permission_error" "forbidden",
    HostNotAllowed = FORBIDDEN "permission_error" "host_not_allowed",
    OriginNotAllowed = FORBIDDEN "permission_error" "origin_not_allowed",
    ModelNotFound = NOT_FOUND "not_found_error" "model_not_found",
    UnknownUrl = NOT_FOUND "not_found_error" "unknown_url",
    MethodNotAllowed = METHOD_NOT_ALLOWED "not_found_error" "method_not_allowed",
    BodyTimeout = REQUEST_TIMEOUT "timeout_error" "body_timeout",
    BodyTooLarge = PAYLOAD_TOO_LARGE "invalid_request_error" "body_too_large",
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE "invalid_request_error" "unsupported_media_type",
    QueueFull = TOO_MANY_REQUESTS "rate_limit_error" "queue_full",
    BudgetFull = TOO_MANY_REQUESTS "rate_limit_error" "budget_full",
    Internal = INTERNAL_SERVER_ERROR "server_error" "internal",
    Loading = SERVICE_UNAVAILABLE "unavailable_error" "loading",
    Draining = SERVICE_UNAVAILABLE "unavailable_error" "draining",
    EngineFailed = SERVICE_UNAVAILABLE "unavailable_error" "engine_failed",
    AuditFailed = SERVICE_UNAVAILABLE "unavailable_error" "audit_failed",
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

impl ApiError {
    pub fn new(code: Code, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into(), param: None, retry_after_s: None }
    }

    /// An error of one field of the request.
    pub fn of(code: Code, param: &str, message: impl Into<String>) -> ApiError {
        ApiError::new(code, message).at(param)
    }

    /// A value of a field that is none.
    pub fn invalid(param: &str, message: impl Into<String>) -> ApiError {
        ApiError::of(Code::InvalidValue, param, message)
    }

    /// A field that has to be there.
    pub fn missing(param: &str) -> ApiError {
        ApiError::of(Code::MissingParameter, param, format!("{param} is missing"))
    }

    /// A field that cannot be honoured.
    pub fn unsupported(param: &str) -> ApiError {
        let message = format!("{param} is not supported; leave it out");
        ApiError::of(Code::UnsupportedParameter, param, message)
    }

    /// The same error, of one field of the request.
    pub fn at(self, param: &str) -> ApiError {
        ApiError { param: Some(param.to_owned()), ..self }
    }

    pub fn draining() -> ApiError {
        ApiError::new(Code::Draining, "the server is shutting down").retry_after(5)
    }

    /// After a panic.
    pub fn failed() -> ApiError {
        ApiError::new(Code::Internal, "the request failed; the server goes on")
    }

    pub fn retry_after(self, seconds: u64) -> ApiError {
        ApiError { retry_after_s: Some(seconds.clamp(1, 60)), ..self }
    }

    /// The same error of a request with `prompt` instead of `messages`.
    pub fn of_prompt(self) -> ApiError {
        let is_messages = self.param.as_deref() == Some("messages");
        let param = if is_messages { Some("prompt".to_owned()) } else { self.param };
        ApiError { param, ..self }
    }

    /// The error object of a body or an event.
    pub fn json(&self) -> Value {
        let ApiError { code, message, param, .. } = self;
        let error =
            json!({"message": message, "type": code.kind(), "param": param, "code": code.name()});
        json!({"error": error})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), Json(self.json())).into_response();
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
        // For the metrics.
        response.extensions_mut().insert(self.code);
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
                ApiError::invalid("prompt", message)
            }
            EngineError::NothingToGenerate => ApiError::invalid("max_tokens", message),
            EngineError::Penalty { .. } => ApiError::invalid("repetition_penalty", message),
            EngineError::NotFinite { .. } | EngineError::NoKnownLogprobs => {
                ApiError::new(Code::Internal, message)
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
            PanelError::Chat(error) => ApiError::invalid("messages", error.to_string()),
            other => ApiError::new(Code::Internal, other.to_string()),
        }
    }
}
