//! Stands in for `fetch` in a build without the feature `hub`: every fetch is refused.

use std::path::Path;

use super::{Checkpoint, HubError, HubOptions, OfflineReason, Repository};

/// Whether this build can fetch at all.
pub const AVAILABLE: bool = false;

/// Refuses.
///
/// # Errors
/// Always [`HubError::Forbidden`].
pub fn fetch_repository(
    repository: &Repository,
    _to: Option<&Path>,
    _options: &HubOptions,
) -> Result<Checkpoint, HubError> {
    Err(HubError::Forbidden { member: repository.spelling(), reason: OfflineReason::Build })
}
