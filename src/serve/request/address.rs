//! What a request says in its path and query. What cannot be read there is refused as a field of a body is.

use std::fmt::Display;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::serve::error::{ApiError, Code};

/// A part of the address, by the extractor that reads it.
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
