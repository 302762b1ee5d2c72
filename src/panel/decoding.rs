//! How the completions of a run are decoded: under the grammars of its system, as JSON objects, or as free text.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecodingMode {
    /// Constrained decoding: a grammar holds every completion to what the system reads
    #[default]
    #[value(alias = "constrained")]
    Grammar,
    /// Any JSON object where MedAgentBoard asks for one (its JSON mode), free text elsewhere
    Json,
    /// Free text everywhere
    Text,
}

impl DecodingMode {
    /// As in «constrained text».
    pub fn adjective(self) -> &'static str {
        match self {
            DecodingMode::Grammar => "constrained",
            DecodingMode::Json => "JSON-mode",
            DecodingMode::Text => "free",
        }
    }
}
