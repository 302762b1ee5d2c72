//! Stands in for `signature` in a build without the feature `airgap`: no signature is verified.

use std::path::Path;

use super::{FileCheck, HubError};
use crate::fault::faults;

faults! {
    /// Why a model's signature is refused.
    #[derive(Debug, thiserror::Error)]
    pub enum SignatureError {
        #[error("this build verifies no signatures of models (it lacks the feature `airgap`)")]
        Build => Usage, "take a build with that feature, or have `model_signing verify` do it";
    }
}

/// What a signature says of a folder.
#[derive(Debug)]
pub struct SignedFolder {
    pub key: String,
    pub ignored: Vec<String>,
    pub checks: Vec<FileCheck>,
}

/// Refuses.
///
/// # Errors
/// Always [`SignatureError::Build`].
pub fn verify(_directory: &Path, _signature: &Path, _key: &Path) -> Result<SignedFolder, HubError> {
    Err(SignatureError::Build.into())
}
