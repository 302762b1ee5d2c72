//! The signature of a model's folder as OpenSSF's model-signing makes it with a key: a Sigstore bundle (v0.3) around a signed statement that
//! names every file with its sum (<https://github.com/ossf/model-signing-spec>).

mod folder;
mod key;
mod statement;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use self::folder::checks;
use self::key::SignerKey;
use self::statement::signed_files;
use super::{FileCheck, HubError};
use crate::fault::faults;
use crate::outside;

const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// What is signed, as in-toto names it.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

const OTHERS_CHECK: &str =
    "sign the model with a key (`model_signing sign key`), or have that tool verify it";

faults! {
    /// Why a model's signature is refused.
    #[derive(Debug, thiserror::Error)]
    pub enum SignatureError {
        #[error("{key} is no public key: {reason}")]
        BadKey { key: String, reason: String } => Usage,
            "name a PEM file of a public key on the curve P-256 or P-384, as `openssl ec -pubout` writes it";
        #[error("{} is no signature of a model: {reason}", path.display())]
        Malformed { path: PathBuf, reason: String } => Artefact,
            "take the model.sig that `model_signing sign key` wrote";
        #[error("{} was signed without a key, by {how}, which is not verified here", path.display())]
        Keyless { path: PathBuf, how: &'static str } => Artefact, OTHERS_CHECK;
        #[error("{} was made with another key: it names {named}, {key} is {given}", path.display())]
        OtherKey { path: PathBuf, named: String, key: String, given: String } => Artefact,
            "ask the signer for the key, by another way than the model came";
        #[error("{} is not a signature by {key}: what it states was changed, or another key signed it", path.display())]
        Unsigned { path: PathBuf, key: String } => Artefact,
            "fetch model and signature again, or ask the signer for the key";
        #[error("{}: {what} is not verified here", path.display())]
        Unsupported { path: PathBuf, what: String } => Artefact, OTHERS_CHECK;
    }
}

/// What a signature says of a folder.
#[derive(Debug)]
pub struct SignedFolder {
    /// The SHA-256 of the key's PEM, in hexadecimal.
    pub key: String,
    /// What the signer left out, relative to the folder.
    pub ignored: Vec<String>,
    /// Every file that is signed or there.
    pub checks: Vec<FileCheck>,
}

/// A Sigstore bundle.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    verification_material: Material,
    dsse_envelope: Envelope,
}

/// What the signature is to be verified with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    public_key: Option<KeyHint>,
    /// Of a short-lived key for an identity.
    certificate: Option<IgnoredAny>,
    x509_certificate_chain: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct KeyHint {
    /// The sum of the key's PEM.
    hint: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
}

/// Verifies the signature of a folder by the key in the file `key`, then compares the folder with what it states. A file that differs,
/// lacks or is not signed is no error here: it is in the list.
///
/// # Errors
/// A key that is none; a signature that is none, was made otherwise than with a key, or does not hold; what cannot be read.
pub fn verify(directory: &Path, signature: &Path, key: &Path) -> Result<SignedFolder, HubError> {
    let key = SignerKey::read(key)?;
    let malformed =
        |reason: String| SignatureError::Malformed { path: signature.to_owned(), reason };
    let bundle: Bundle = outside::json(signature).map_err(|error| malformed(error.to_string()))?;
    let payload = payload(bundle, signature, &key)?;
    let signed = signed_files(&payload, signature)?;
    let checks = checks(directory, signature, &signed)?;
    Ok(SignedFolder { key: key.fingerprint, ignored: signed.ignored, checks })
}

/// The bytes that were signed with the key.
fn payload(bundle: Bundle, path: &Path, key: &SignerKey) -> Result<Vec<u8>, SignatureError> {
    let path = path.to_owned();
    let malformed = |reason: String| SignatureError::Malformed { path: path.clone(), reason };
    let Bundle { media_type, verification_material: material, dsse_envelope: envelope } = bundle;
    if media_type != MEDIA_TYPE {
        return Err(malformed(format!("its media type is {media_type}")));
    }
    if material.certificate.is_some() {
        return Err(SignatureError::Keyless { path, how: "an identity (Fulcio, Rekor)" });
    }
    if material.x509_certificate_chain.is_some() {
        return Err(SignatureError::Keyless { path, how: "a chain of certificates" });
    }
    let Some(KeyHint { hint }) = material.public_key else {
        return Err(malformed("it names no key".to_owned()));
    };
    if let Some(named) = hint.filter(|hint| !hint.is_empty() && *hint != key.fingerprint) {
        let (key, given) = (key.name.clone(), key.fingerprint.clone());
        return Err(SignatureError::OtherKey { path, named, key, given });
    }
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(malformed(format!("what is signed is {}", envelope.payload_type)));
    }
    let [Signature { sig }] = envelope.signatures.as_slice() else {
        return Err(malformed(format!("it has {} signatures", envelope.signatures.len())));
    };
    let decoded = |text: &str| {
        STANDARD.decode(text).map_err(|error| malformed(format!("no base64: {error}")))
    };
    let (payload, sig) = (decoded(&envelope.payload)?, decoded(sig)?);
    match key.has_signed(&pre_authentication_encoding(&payload), &sig) {
        true => Ok(payload),
        false => Err(SignatureError::Unsigned { path, key: key.name.clone() }),
    }
}

/// What DSSE signs: type and payload, each with its length.
fn pre_authentication_encoding(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}
