//! A signer's public key: PEM, on the curve P-256 or P-384.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, EcdsaVerificationAlgorithm, UnparsedPublicKey,
};

use super::SignatureError;
use crate::digest::sha256;
use crate::outside;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";
/// A PEM line's digits.
const LINE: usize = 64;

/// How the DER of a key begins that lies uncompressed on a curve (RFC 5480), behind which its point stands, and the bytes of that.
const CURVES: [(&[u8], usize, &EcdsaVerificationAlgorithm); 2] = [
    (
        &[
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
            0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ],
        65,
        &ECDSA_P256_SHA256_ASN1,
    ),
    (
        &[
            0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
            0x05, 0x2b, 0x81, 0x04, 0x00, 0x22, 0x03, 0x62, 0x00,
        ],
        97,
        &ECDSA_P384_SHA384_ASN1,
    ),
];

pub struct SignerKey {
    /// As it was given.
    pub name: String,
    /// The SHA-256 of the PEM as OpenSSL writes it, in hexadecimal.
    pub fingerprint: String,
    algorithm: &'static EcdsaVerificationAlgorithm,
    point: Vec<u8>,
}

impl SignerKey {
    /// # Errors
    /// What is no such key.
    pub fn read(path: &Path) -> Result<SignerKey, SignatureError> {
        let name = path.display().to_string();
        let text = outside::given_text(path);
        let key = text.map_err(|error| error.to_string()).and_then(|text| parse(&text));
        let (der, algorithm, point) =
            key.map_err(|reason| SignatureError::BadKey { key: name.clone(), reason })?;
        Ok(SignerKey { name, fingerprint: sha256(pem(&der)), algorithm, point })
    }

    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(self.algorithm, &self.point);
        key.verify(message, signature).is_ok()
    }
}

/// The DER, how it signs, and its point.
fn parse(text: &str) -> Result<(Vec<u8>, &'static EcdsaVerificationAlgorithm, Vec<u8>), String> {
    let digits = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let Some(digits) = digits else {
        return Err(format!("it does not begin with {BEGIN}, or holds more than a key"));
    };
    let digits: String = digits.split_ascii_whitespace().collect();
    let der = STANDARD.decode(digits).map_err(|error| format!("no base64: {error}"))?;
    let curve = CURVES.iter().find_map(|(prefix, length, algorithm)| {
        let point = der.strip_prefix(*prefix).filter(|point| point.len() == *length)?;
        Some((*algorithm, point.to_vec()))
    });
    match curve {
        Some((algorithm, point)) => Ok((der, algorithm, point)),
        None => Err("it lies on neither P-256 nor P-384".to_owned()),
    }
}

fn pem(der: &[u8]) -> String {
    let digits = STANDARD.encode(der);
    let mut text = format!("{BEGIN}\n");
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % LINE == 0 {
            text.push('\n');
        }
        text.push(digit);
    }
    format!("{text}\n{END}\n")
}
