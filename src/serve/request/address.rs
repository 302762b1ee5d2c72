//! Reads the path and the query of a request, with errors in the form of the API.

use std::fmt::Display;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::serve::error::{ApiError, Code};

/// Wraps an extractor of the path or the query.
pub struct Address<E>(pub E);

impl<S: Sync, E: FromRequestParts<S>> FromRequestParts<S> for Address<E>
where
    E::Rejection: Display,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Address<E>, ApiError> {
        let read = E::from_request_parts(parts, state).await;
        let refused = |error| ApiError::new(Code::InvalidValue, format!("the address: {error}"));
        read.map(Address).map_err(refused)
    }
}
