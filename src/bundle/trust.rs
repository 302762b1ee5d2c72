//! Whose bundles a root takes: the product and the signers of the first one that was installed in it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::signature::TrustedKey;
use super::verify::Opened;
use super::version::Version;
use super::{BundleError, files};
use crate::experiment::whole_file::write_public;
use crate::hub::if_there;

/// In the root.
const FILE: &str = "trust.json";
const MOST_BYTES: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// The name in the manifest.
    product: String,
    /// As minisign prints them. All must have signed.
    keys: Vec<String>,
    /// The newest version that was ever made current, whatever was removed since; earlier versions of wardround did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Version>,
}

impl Trust {
    /// What the bundle is of, and the keys that it was held against.
    pub fn in_bundle(bundle: &Opened, keys: &[TrustedKey]) -> Trust {
        let keys = keys.iter().map(|key| key.text.clone()).collect();
        Trust { product: bundle.manifest.name.clone(), keys, newest: None }
    }

    pub fn with_newest(self, newest: Option<Version>) -> Trust {
        Trust { newest, ..self }
    }

    /// What was first installed in a root; `None` before that.
    ///
    /// # Errors
    /// A file that cannot be read, or is no such file.
    pub fn of_root(root: &Path) -> Result<Option<Trust>, BundleError> {
        let Some(bytes) = if_there(files::read_small(&root.join(FILE), MOST_BYTES))? else {
            return Ok(None);
        };
        let bad = |why: String| BundleError::BadFile { file: FILE.to_owned(), why };
        let trust: Trust =
            serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        match trust.keys.is_empty() {
            false => Ok(Some(trust)),
            true => Err(bad("it names no key".to_owned())),
        }
    }

    /// # Errors
    /// A place that cannot be written.
    pub fn pin(&self, root: &Path) -> Result<(), BundleError> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)? + "\n";
        Ok(write_public(&root.join(FILE), text.as_bytes())?)
    }

    /// The keys that must have signed what is here.
    ///
    /// # Errors
    /// What is no key.
    pub fn keys(&self) -> Result<Vec<TrustedKey>, BundleError> {
        self.keys.iter().map(|key| TrustedKey::open(key)).collect()
    }

    /// Refuses a bundle of another product, or one that was not held against every key of this root.
    ///
    /// # Errors
    /// What differs.
    pub fn expect(&self, root: &Path, new: &Trust) -> Result<(), BundleError> {
        let root = root.to_owned();
        if self.product != new.product {
            let (own, new) = (self.product.clone(), new.product.clone());
            return Err(BundleError::OtherProduct { root, own, new });
        }
        match self.keys.iter().find(|key| !new.keys.contains(key)) {
            None => Ok(()),
            Some(key) => Err(BundleError::OtherSigner { root, key: key.clone() }),
        }
    }
}
