//! The errors of the API: an HTTP status and an error object in OpenAI's form.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::diagnosis::{Blame, Diagnosis};
use crate::engine::EngineError;
use crate::panel::PanelError;

/// The machine-readable code of an error: its HTTP status, and its name in the error object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    status: u16,
    pub name: &'static str,
}

impl Code {
    pub const INVALID_JSON: Code = Code { status: 400, name: "invalid_json" };
    pub const MISSING_PARAMETER: Code = Code { status: 400, name: "missing_parameter" };
    pub const INVALID_TYPE: Code = Code { status: 400, name: "invalid_type" };
    pub const INVALID_VALUE: Code = Code { status: 400, name: "invalid_value" };
    pub const UNSUPPORTED_PARAMETER: Code = Code { status: 400, name: "unsupported_parameter" };
    pub const CONTEXT_LENGTH_EXCEEDED: Code = Code { status: 400, name: "context_length_exceeded" };
    pub const INVALID_SCHEMA: Code = Code { status: 400, name: "invalid_schema" };
    pub const SCHEMA_TOO_COMPLEX: Code = Code { status: 400, name: "schema_too_complex" };
    pub const INVALID_API_KEY: Code = Code { status: 401, name: "invalid_api_key" };
    pub const HOST_NOT_ALLOWED: Code = Code { status: 403, name: "host_not_allowed" };
    pub const MODEL_NOT_FOUND: Code = Code { status: 404, name: "model_not_found" };
    pub const UNKNOWN_URL: Code = Code { status: 404, name: "unknown_url" };
    pub const METHOD_NOT_ALLOWED: Code = Code { status: 405, name: "method_not_allowed" };
    pub const BODY_TIMEOUT: Code = Code { status: 408, name: "body_timeout" };
    pub const BODY_TOO_LARGE: Code = Code { status: 413, name: "body_too_large" };
    pub const UNSUPPORTED_MEDIA_TYPE: Code = Code { status: 415, name: "unsupported_media_type" };
    pub const QUEUE_FULL: Code = Code { status: 429, name: "queue_full" };
    pub const BUDGET_FULL: Code = Code { status: 429, name: "budget_full" };
    pub const INTERNAL: Code = Code { status: 500, name: "internal" };
    pub const LOADING: Code = Code { status: 503, name: "loading" };
    pub const DRAINING: Code = Code { status: 503, name: "draining" };
    pub const ENGINE_FAILED: Code = Code { status: 503, name: "engine_failed" };
    pub const AUDIT_FAILED: Code = Code { status: 503, name: "audit_failed" };

    fn status(self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The type in the error object.
    fn kind(self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 | 405 => "not_found_error",
            408 => "timeout_error",
            429 => "rate_limit_error",
            500 => "server_error",
            503 => "unavailable_error",
            _ => "invalid_request_error",
        }
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
        ApiError::of(Code::INVALID_VALUE, param, message)
    }

    /// A field that has to be there.
    pub fn missing(param: &str) -> ApiError {
        ApiError::of(Code::MISSING_PARAMETER, param, format!("{param} is missing"))
    }

    /// A field that cannot be honoured.
    pub fn unsupported(param: &str) -> ApiError {
        let message = format!("{param} is not supported; leave it out");
        ApiError::of(Code::UNSUPPORTED_PARAMETER, param, message)
    }

    /// The same error, of one field of the request.
    pub fn at(self, param: &str) -> ApiError {
        ApiError { param: Some(param.to_owned()), ..self }
    }

    pub fn draining() -> ApiError {
        ApiError::new(Code::DRAINING, "the server is shutting down").retry_after(5)
    }

    /// After a panic.
    pub fn failed() -> ApiError {
        ApiError::new(Code::INTERNAL, "the request failed; the server goes on")
    }

    pub fn retry_after(self, seconds: u64) -> ApiError {
        ApiError { retry_after_s: Some(seconds.clamp(1, 60)), ..self }
    }

    /// The error object of a body or an event.
    pub fn json(&self) -> Value {
        let ApiError { code, message, param, .. } = self;
        let error =
            json!({"message": message, "type": code.kind(), "param": param, "code": code.name});
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
        if self.code == Code::INVALID_API_KEY {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // SDKs retry after every 5xx: an internal error would fail again.
        if self.code == Code::INTERNAL {
            let name = HeaderName::from_static("x-should-retry");
            headers.insert(name, HeaderValue::from_static("false"));
        }
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
        let (message, blame) = (error.to_string(), error.blame());
        match error {
            EngineError::TooLong { prompt, max_tokens, context } => {
                too_long(prompt, max_tokens, context)
            }
            EngineError::PoolTooSmall { prompt, max_tokens, pages, .. } => {
                too_long(prompt, max_tokens, pages * crate::ops::PAGE)
            }
            EngineError::Grammar(_) => {
                ApiError::of(Code::INVALID_SCHEMA, "response_format", message)
            }
            EngineError::Start(_) | EngineError::Ops(_) | EngineError::Died { .. } => {
                ApiError::new(Code::ENGINE_FAILED, message).retry_after(10)
            }
            _ if blame == Blame::Usage => ApiError::new(Code::INVALID_VALUE, message),
            _ => ApiError::new(Code::INTERNAL, message),
        }
    }
}

/// A prompt that leaves no room for a completion. Clients recognise the beginning of the message.
pub fn too_long(prompt: usize, max_tokens: usize, context: usize) -> ApiError {
    ApiError::new(
        Code::CONTEXT_LENGTH_EXCEEDED,
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
            other => ApiError::new(Code::INTERNAL, other.to_string()),
        }
    }
}
