//! How this program was built, as far as the build was told: for `wardround doctor`.

use serde::{Deserialize, Serialize};

/// What this program was built from, by what, and with what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildInfo {
    pub version: String,
    /// The commit that the build was told of, as `WARDROUND_COMMIT`.
    pub commit: Option<String>,
    /// Whether that commit's files were changed, as `-dirty` behind it says.
    pub dirty: bool,
    pub rustc: String,
    pub target: String,
    pub profile: String,
    pub features: Vec<String>,
    /// The time that the build was told to take for its own, in seconds since 1970.
    pub source_date_epoch: Option<u64>,
}

impl BuildInfo {
    /// Of this program.
    pub fn own() -> BuildInfo {
        let features = [
            ("airgap", cfg!(feature = "airgap")),
            ("cuda", cfg!(feature = "cuda")),
            ("cuda-emulated", cfg!(feature = "cuda-emulated")),
            ("hub", cfg!(feature = "hub")),
            ("metal", cfg!(feature = "metal")),
            ("remote", cfg!(feature = "remote")),
            ("serve", cfg!(feature = "serve")),
        ];
        let told = option_env!("WARDROUND_COMMIT").filter(|told| !told.is_empty());
        BuildInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: told.map(|told| told.strip_suffix("-dirty").unwrap_or(told).to_owned()),
            dirty: told.is_some_and(|told| told.ends_with("-dirty")),
            rustc: env!("WARDROUND_RUSTC").to_owned(),
            target: env!("WARDROUND_TARGET").to_owned(),
            profile: env!("WARDROUND_PROFILE").to_owned(),
            features: features
                .into_iter()
                .filter(|(_, is_on)| *is_on)
                .map(|(name, _)| name.to_owned())
                .collect(),
            source_date_epoch: option_env!("SOURCE_DATE_EPOCH")
                .and_then(|epoch| epoch.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_what_it_was_built_by() {
        let own = BuildInfo::own();
        assert!(own.rustc.starts_with("rustc 1."), "{}", own.rustc);
        assert_eq!(own.features.iter().any(|one| one == "serve"), cfg!(feature = "serve"));
        assert!(own.features.is_sorted());
    }
}
