//! A completion that is kept, its key, and the bytes of its file: a sum over the key and the rest, and JSON.

use serde::{Deserialize, Serialize};

use crate::digest::{hex, sha256};
use crate::record::{AnsweredBy, CallLine, FinishReason, Usage};

/// Of a sum, and of the blank after it.
const SUM: usize = 64 + 1;
/// Longer ones are none of ours: a completion of a million tokens is a third of it.
pub(super) const LONGEST: u64 = 32 << 20;

/// What a completion is kept under: the sum of all that determines it, `sum` being that of the model and the request. Requests of different
/// salts share nothing, and versions of wardround none either: what a release changes in grammars or on a GPU, no number says.
pub fn store_key(sum: &str, salt: Option<[u8; 16]>) -> String {
    let salt = salt.map_or_else(|| "none".to_owned(), |salt| hex(&salt));
    let (version, bits) = (env!("CARGO_PKG_VERSION"), wardround_engine::BITS);
    sha256(format!("version {version} bits {bits} salt {salt} request {sum}"))
}

/// A completion that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCall {
    pub text: String,
    pub tokens: Vec<u32>,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    /// What it took when it was computed.
    pub elapsed_ms: u64,
    /// Of an endpoint, which may answer otherwise when it is asked again, so that no store keeps it.
    #[serde(skip)]
    pub elsewhere: Option<Elsewhere>,
}

/// What an endpoint said beside its completion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elsewhere {
    pub answered_by: Option<AnsweredBy>,
    pub constrained: bool,
    pub not_sent: Vec<String>,
}

impl From<&CallLine> for KeptCall {
    fn from(call: &CallLine) -> KeptCall {
        KeptCall {
            text: call.text.clone(),
            tokens: call.tokens.clone(),
            finish_reason: call.finish_reason,
            usage: call.usage,
            elapsed_ms: call.elapsed_ms,
            elsewhere: None,
        }
    }
}

impl KeptCall {
    /// The bytes of its file.
    pub(super) fn encode(&self, key: &str) -> std::io::Result<Vec<u8>> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{} {json}\n", sha256(format!("{key} {json}"))).into_bytes())
    }

    /// What a file keeps under `key`; `None` where a byte of it is not as it was written.
    pub(super) fn decode(key: &str, bytes: &[u8]) -> Option<KeptCall> {
        let kept: KeptCall = serde_json::from_slice(bytes.get(SUM..)?).ok()?;
        (kept.encode(key).ok()? == bytes).then_some(kept)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn kept(text: &str) -> KeptCall {
        KeptCall {
            text: text.to_owned(),
            tokens: vec![1, 2],
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            elapsed_ms: 7,
            elsewhere: None,
        }
    }

    #[test]
    fn a_file_with_any_other_byte_is_none() {
        let (key, kept) = (store_key("a", None), kept("said\n\u{2028}"));
        let bytes = kept.encode(&key).unwrap();
        assert_eq!(KeptCall::decode(&key, &bytes), Some(kept));
        assert!(KeptCall::decode(&store_key("b", None), &bytes).is_none(), "that of another call");
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[place] ^= 1 << bit;
                assert!(KeptCall::decode(&key, &other).is_none(), "{place}, bit {bit}");
            }
            assert!(KeptCall::decode(&key, &bytes[..place]).is_none(), "{place}");
        }
    }

    #[test]
    fn keys_differ_by_request_and_by_salt() {
        let keys = [
            store_key("a", None),
            store_key("b", None),
            store_key("a", Some([0; 16])),
            store_key("a", Some([1; 16])),
        ];
        let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
