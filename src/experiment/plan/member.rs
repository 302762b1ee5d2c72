//! A member of the panel in a plan: all of a model that its answers depend on.

use serde::{Deserialize, Serialize};

use crate::engine::Sampling;
use crate::panel::SamplingChoice;
use crate::panel::backbone::Description;

/// One member of the panel: a role on a backbone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberPlan {
    /// The role's short name: `sym`, `ddx`, `guide`.
    pub agent: String,
    /// What the panel calls the backbone: a card's name, a hub id, or a directory's name.
    pub backbone: String,
    /// The hub's repository and the commit it was resolved to, where the model came from the hub or its cache.
    pub repository: Option<String>,
    pub revision: Option<String>,
    /// Over the sorted `name sha256` lines of the weight files.
    pub weights_sha256: String,
    pub config_sha256: String,
    pub tokenizer_sha256: String,
    pub template_sha256: String,
    pub family: String,
    pub dtype: String,
    pub quantisation: String,
    /// Of keys and values.
    pub kv_dtype: String,
    /// Whether a `<think>` section is asked for, where the template knows the switch; `None`: left to the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// As the model's files or the run set it. What is `None` is off; of a remote member, not sent.
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    /// The member's own random seed, which earlier versions could give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The member's own limit of a completion's tokens, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    pub eos_ids: Vec<u32>,
    /// Tokens that a sequence may hold.
    pub context: usize,
}

/// The family of a member that is no model here but an endpoint elsewhere.
const REMOTE: &str = "remote";

impl MemberPlan {
    /// The entry for `agent` on a checkpoint.
    pub fn local(
        agent: &str,
        model: &Description,
        thinking: Option<bool>,
        sampling: SamplingChoice,
    ) -> MemberPlan {
        let Sampling { temperature, top_k, top_p, min_p, repetition_penalty, .. } =
            sampling.over(model.generation.sampling);
        MemberPlan {
            agent: agent.to_owned(),
            backbone: model.checkpoint.name.clone(),
            repository: model.checkpoint.repository.clone(),
            revision: model.checkpoint.revision.clone(),
            weights_sha256: model.weights_sha256.clone(),
            config_sha256: model.config_sha256.clone(),
            tokenizer_sha256: model.tokenizer_sha256.clone(),
            template_sha256: model.chat.sha256.clone(),
            family: model.config.family.name().to_owned(),
            dtype: model.precision.stored.to_string(),
            quantisation: model.precision.quantisation.to_string(),
            kv_dtype: model.precision.kv.to_string(),
            thinking,
            temperature: Some(temperature),
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            max_tokens: sampling.max_tokens,
            eos_ids: model.generation.eos_ids.clone(),
            context: model.context,
            ..MemberPlan::default()
        }
    }

    /// The entry for `agent` at an endpoint, of which nothing is known but its address.
    pub fn remote(
        agent: &str,
        address: &str,
        thinking: Option<bool>,
        sampling: SamplingChoice,
    ) -> MemberPlan {
        let unknown = || "unknown".to_owned();
        MemberPlan {
            agent: agent.to_owned(),
            backbone: address.to_owned(),
            weights_sha256: unknown(),
            config_sha256: unknown(),
            tokenizer_sha256: unknown(),
            template_sha256: unknown(),
            family: REMOTE.to_owned(),
            dtype: unknown(),
            quantisation: unknown(),
            kv_dtype: unknown(),
            thinking,
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            max_tokens: sampling.max_tokens,
            ..MemberPlan::default()
        }
    }

    /// Whether the member is an endpoint: what it said cannot be generated again.
    pub fn is_remote(&self) -> bool {
        self.family == REMOTE
    }
}
