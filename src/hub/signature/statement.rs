//! What the signer of a model stated: its files and their sums, and what was left out.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use super::SignatureError;
use crate::digest::{hex, is_sha256};
use crate::outside::is_below;

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const SIGNATURE: &str = "https://model_signing/signature/v1.0";
/// The one way of naming files that is read: a sum a file.
const METHOD: &str = "files";
const SHA256: &str = "sha256";

/// The files that are signed.
#[derive(Debug)]
pub struct SignedFiles {
    /// Each file's sum, by its path relative to the folder.
    pub files: BTreeMap<String, String>,
    pub ignored: Vec<String>,
}

/// What says whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "_type")]
    kind: String,
    #[serde(rename = "predicateType")]
    predicate_type: String,
}

#[derive(Deserialize)]
struct Statement {
    subject: Vec<Subject>,
    predicate: Predicate,
}

#[derive(Deserialize)]
struct Subject {
    digest: SubjectDigest,
}

#[derive(Deserialize)]
struct SubjectDigest {
    /// Over the sums of all files, one after the other.
    sha256: String,
}

#[derive(Deserialize)]
struct Predicate {
    serialization: Serialization,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Serialization {
    method: String,
    hash_type: String,
    #[serde(default)]
    ignore_paths: Vec<String>,
    /// A link is summed as what it leads to, whatever the signer did.
    #[serde(rename = "allow_symlinks")]
    _allow_symlinks: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

/// Reads the signed bytes of `path`.
///
/// # Errors
/// Another statement; one of sums that are not computed here; one that contradicts itself.
pub fn signed_files(payload: &[u8], path: &Path) -> Result<SignedFiles, SignatureError> {
    let malformed = |reason: String| SignatureError::Malformed { path: path.to_owned(), reason };
    let other = |what: String| SignatureError::Unsupported { path: path.to_owned(), what };
    let no_json = |error: serde_json::Error| malformed(format!("what is signed: {error}"));
    let Kind { kind, predicate_type } = serde_json::from_slice(payload).map_err(no_json)?;
    if kind != STATEMENT || predicate_type != SIGNATURE {
        return Err(other(format!("a statement of the type {predicate_type}")));
    }
    let Statement { subject, predicate } = serde_json::from_slice(payload).map_err(no_json)?;
    let Serialization { method, hash_type, ignore_paths, .. } = predicate.serialization;
    if method != METHOD || hash_type != SHA256 {
        return Err(other(format!("a folder named by {method} with {hash_type}")));
    }
    let mut files = BTreeMap::new();
    let mut root = Sha256::new();
    for Resource { name, algorithm, digest } in predicate.resources {
        if algorithm != SHA256 {
            return Err(other(format!("{name} with {algorithm}")));
        }
        if !is_below(&name) || !is_sha256(&digest) {
            return Err(malformed(format!("it names {} with {digest}", name.escape_debug())));
        }
        root.update(bytes(&digest));
        if files.insert(name.clone(), digest).is_some() {
            return Err(malformed(format!("it names {name} twice")));
        }
    }
    match subject.as_slice() {
        [subject] if subject.digest.sha256 == hex(&root.finalize()) => {}
        _ => {
            return Err(malformed("its sum of all files is not that of those it names".to_owned()));
        }
    }
    let ignored = ignore_paths.into_iter().filter(|ignored| is_below(ignored)).collect();
    Ok(SignedFiles { files, ignored })
}

/// Of a sum in hexadecimal.
fn bytes(digest: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or_default() as u8;
    digest.as_bytes().chunks(2).map(|pair| 16 * digit(pair[0]) + digit(pair[1])).collect()
}
