//! The systems of `serve`, as its flags say them and as the audit trail keeps them, for `replay --audit` to load the same.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::ExemplarFlags;
use crate::cli::options::PromptFlags;
use crate::retrieval::CorpusSpec;
use crate::systems::file::SystemText;

#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default)]
#[command(next_help_heading = "Systems")]
pub struct SystemFlags {
    /// Serve a system under its name, such as medmad, or that of a TOML file, with the models in their order or those after =; may be repeated
    #[arg(long, value_name = "SYSTEM[=A,B,C]")]
    pub system: Vec<String>,
    /// Change a setting of a system, such as medmad.t_max=2, as --set of `run` does; may be repeated
    #[arg(long, value_name = "SYSTEM.KEY=VALUE")]
    pub set: Vec<String>,
    /// What the files held that `system` names.
    #[arg(skip)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, SystemText>,
    #[command(flatten)]
    #[serde(flatten)]
    pub prompts: PromptFlags,
    #[command(flatten)]
    pub corpus: CorpusSpec,
    #[command(flatten)]
    pub exemplars: ExemplarFlags,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_gives_back_what_this_version_or_an_earlier_one_wrote() {
        let kept = r#"{"system":["medreflex=m1"],"set":[],"prompts":null,"corpus":{"corpus":["a,b"],"sources":[],"reranker":null,"reranker_tokens":null,"reranker_quant":"none","retrieval_device":"cpu","no_passages":false,"dedup":true,"newer_than":null},"exemplars":{"exemplars":"n.csv","exemplars_format":"medec","exemplar_reasons":"r.json","exemplar_encoder":"e"}}"#;
        let flags: SystemFlags = serde_json::from_str(kept).unwrap();
        assert!(flags.corpus.gone.dedup);
        assert_eq!(flags.corpus.device.as_deref(), Some("cpu"));
        let again = serde_json::to_string(&flags).unwrap();
        assert_eq!(
            serde_json::to_string(&serde_json::from_str::<SystemFlags>(&again).unwrap()).unwrap(),
            again
        );
        // Earlier versions had a search by words.
        let older = kept.replace("\"dedup\":true", "\"hybrid\":false,\"dedup\":true");
        assert_eq!(serde_json::from_str::<SystemFlags>(&older).unwrap().corpus, flags.corpus);
    }
}
