//! The systems of `serve`, as its flags say them and as the audit trail keeps them, for `replay --audit` to load the same.

use std::collections::BTreeMap;

use clap::Args;
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

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
    #[serde(serialize_with = "by_flags")]
    pub corpus: CorpusSpec,
    #[command(flatten)]
    #[serde(serialize_with = "by_flags")]
    pub exemplars: ExemplarFlags,
}

/// What a spec calls otherwise than its flags do, by which trails have it.
const FLAGS: [(&str, &str); 4] = [
    ("directories", "corpus"),
    ("device", "retrieval_device"),
    ("reasons", "exemplar_reasons"),
    ("encoder", "exemplar_encoder"),
];

fn by_flags<S: Serializer>(given: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    let fields: Map<String, Value> = serde_json::to_value(given)
        .and_then(serde_json::from_value)
        .map_err(|error| S::Error::custom(error.to_string()))?;
    serializer.collect_map(fields.into_iter().map(|(name, value)| {
        let flag = FLAGS.iter().find(|(own, _)| *own == name);
        (flag.map_or(name, |(_, flag)| (*flag).to_owned()), value)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_has_the_names_of_flags_and_gives_the_same_back() {
        let kept = r#"{"system":["medreflex=m1"],"set":[],"prompts":null,"corpus":{"corpus":["a,b"],"sources":[],"reranker":null,"reranker_tokens":null,"reranker_quant":"none","retrieval_device":"cpu","no_passages":false,"dedup":true,"newer_than":null},"exemplars":{"exemplars":"n.csv","exemplars_format":"medec","exemplar_reasons":"r.json","exemplar_encoder":"e"}}"#;
        let flags: SystemFlags = serde_json::from_str(kept).unwrap();
        assert!(flags.corpus.refinement.dedup);
        assert_eq!(flags.corpus.device.as_deref(), Some("cpu"));
        assert_eq!(serde_json::to_string(&flags).unwrap(), kept);
        // Earlier versions had a search by words.
        let older = kept.replace("\"dedup\":true", "\"hybrid\":false,\"dedup\":true");
        assert_eq!(serde_json::from_str::<SystemFlags>(&older).unwrap().corpus, flags.corpus);
    }
}
