//! The schema version in every file that wardround writes. It changes when a field does.

use serde::{Deserialize, Serialize};

pub const SCHEMA: u32 = 1;

/// [`SCHEMA`] as a field of a file; reading another version is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub struct Schema;

impl From<Schema> for u32 {
    fn from(_: Schema) -> u32 {
        SCHEMA
    }
}

impl TryFrom<u32> for Schema {
    type Error = String;

    fn try_from(found: u32) -> Result<Schema, String> {
        match found {
            SCHEMA => Ok(Schema),
            _ => Err(format!("schema {found}: this version of wardround reads {SCHEMA}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_schema_is_refused() {
        assert_eq!(serde_json::to_string(&Schema).unwrap(), "1");
        assert_eq!(serde_json::from_str::<Schema>("1").unwrap(), Schema);
        let refused = serde_json::from_str::<Schema>("2").unwrap_err();
        assert_eq!(refused.to_string(), "schema 2: this version of wardround reads 1");
    }
}
