//! Models of an installed bundle, `ROOT/versions/VERSION/models/NAME`: found beside the program that was installed with them, and used
//! only once the licence of a gated one was accepted here.

use std::path::{Path, PathBuf};

/// What a bundle is made of, file by file.
pub const MANIFEST: &str = "MANIFEST.json";
/// The format of manifests that this program writes and reads.
pub const FORMAT: u32 = 1;
/// The sums of every other file but the signatures.
pub const SUMS: &str = "SHA256SUMS";

/// The file of acceptances of a root.
pub fn accepted_file(root: &Path) -> PathBuf {
    root.join("licences").join("accepted.jsonl")
}

/// Where the outcomes of the selftest of the version lie that a program was installed with.
pub fn selftest_of_program(program: &Path) -> Option<PathBuf> {
    let version = version_of_program(program)?;
    let root = version.parent()?.parent()?;
    Some(selftest_folder(root, version.file_name()?.to_str()?))
}

/// Where the outcomes of a version's selftest lie in a root.
pub fn selftest_folder(root: &Path, version: &str) -> PathBuf {
    root.join("selftest").join(version)
}

/// `ROOT/versions/VERSION`, of `ROOT/versions/VERSION/bin/PROGRAM`.
fn version_of_program(program: &Path) -> Option<&Path> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let version = bin.parent().filter(|version| version.join(MANIFEST).is_file())?;
    version.parent().filter(|versions| versions.ends_with("versions"))?;
    Some(version)
}

/// Whether a file of this name beside `SHA256SUMS` is a signature of it: `SHA256SUMS.minisig`, `SHA256SUMS.sig`, and with a signer's name
/// between, `SHA256SUMS.ward.minisig`.
pub fn is_signature(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(SUMS).and_then(|rest| rest.strip_prefix('.')) else {
        return false;
    };
    let (signer, kind) = rest.rsplit_once('.').unwrap_or(("x", rest));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    ["minisig", "sig"].contains(&kind) && !signer.is_empty() && signer.bytes().all(is_plain)
}
