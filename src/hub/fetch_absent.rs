//! Stands in for `fetch` in a build without the feature `hub`: every fetch is refused.

use std::path::{Path, PathBuf};

use super::{Checkpoint, DatasetCard, HubError, HubOptions, OfflineReason, Repository};

/// Whether this build can fetch at all.
pub const AVAILABLE: bool = false;

pub fn fetch_repository(
    repository: &Repository,
    _to: Option<&Path>,
    _options: &HubOptions,
) -> Result<Checkpoint, HubError> {
    let (name, reason) = (repository.spelling(), OfflineReason::Build);
    Err(HubError::Forbidden { verb: "models", name, reason })
}

pub fn fetch_dataset(
    card: &DatasetCard,
    _to: &Path,
    _options: &HubOptions,
) -> Result<Vec<PathBuf>, HubError> {
    let (name, reason) = (card.name.clone(), OfflineReason::Build);
    Err(HubError::Forbidden { verb: "data", name, reason })
}
