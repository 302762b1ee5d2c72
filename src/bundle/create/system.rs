//! What a Linux host needs to run the server: units, rules for its firewall, a container; and what its security department asks. In every
//! bundle.

use super::contents::Contents;
use crate::bundle::BundleError;
use crate::bundle::path::BundlePath;

/// Name and text of each.
const FILES: [(&str, &str); 7] = [
    ("CHANGELOG.md", include_str!("../../../CHANGELOG.md")),
    ("Containerfile", include_str!("../../../deploy/Containerfile")),
    ("SECURITY.md", include_str!("../../../SECURITY.md")),
    ("wardround.nft", include_str!("../../../deploy/wardround.nft")),
    ("wardround.service", include_str!("../../../deploy/wardround.service")),
    ("wardround-cuda.service", include_str!("../../../deploy/wardround-cuda.service")),
    ("wardround-unix.service", include_str!("../../../deploy/wardround-unix.service")),
];

/// Adds each file that the sender gave none of their own for.
pub fn add(contents: &mut Contents) -> Result<(), BundleError> {
    for (name, text) in FILES {
        let path = format!("system/{name}");
        if !contents.items.contains_key(&BundlePath::parse(&path)?) {
            contents.add_text(&path, text, None)?;
        }
    }
    Ok(())
}
