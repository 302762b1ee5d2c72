//! `plan.toml`: everything a run resolved before its first call, enough to run it again.

pub mod gone;
mod parts;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::parts::{CorpusPlan, DatasetPlan, EnginePlan, HostPlan};
use super::compare::{self, FieldDifference};
use super::error::RunError;
use super::exemplars::ExemplarPlan;
use super::whole_file;
use crate::digest::sha256;
use crate::engine::Sampling;
use crate::ops::FAST;
use crate::outside;
use crate::panel::backbone::Description;
use crate::panel::{DecodingMode, SamplingChoice};
use crate::record::SCHEMA;
use crate::systems::Which;
use crate::systems::file::SystemText;
use crate::systems::table::SystemEntry;

/// The plan's name in the run directory.
pub const FILE: &str = "plan.toml";

/// The plan. Two runs of one plan on one device kind by one binary give the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`], of this file and every other of the run directory.
    pub schema: u32,
    /// The version of wardround that wrote the plan.
    pub version: String,
    /// The version whose plan this run repeats, where it is another; not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_version: Option<String>,
    /// When, in UTC (RFC 3339); not compared.
    pub created_at: String,
    pub system: String,
    /// Whether the members answer noise: every weight is synthetic.
    pub synthetic: bool,
    pub seed: u64,
    pub runs: u32,
    pub decoding: DecodingMode,
    /// Over the system's prompts, as they were after any override.
    pub prompts_sha256: String,
    /// The directory that overrides prompts, if one was given.
    pub prompts: Option<String>,
    /// The system's switches, resolved: every one of them, defaults too.
    pub settings: toml::Table,
    /// What describes the system, where that is no part of wardround.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_file: Option<SystemText>,
    pub dataset: DatasetPlan,
    /// In panel order.
    pub panel: Vec<MemberPlan>,
    /// What the system searches; absent where it searches nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<CorpusPlan>,
    /// What the system shows as exemplars; absent where it shows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exemplars: Option<ExemplarPlan>,
    pub engine: EnginePlan,
    pub host: HostPlan,
}

/// One member of the panel: a role on a backbone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// The role's short name: `sym`, `ddx`, `guide`.
    pub agent: String,
    /// What the panel calls the backbone: a card's name, a hub id, or a directory's name.
    pub backbone: String,
    pub path: String,
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
    /// The member's own random seed, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The member's own limit of a completion's tokens, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    pub eos_ids: Vec<u32>,
    /// Tokens that a sequence may hold.
    pub context: usize,
}

/// How a member is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberChoice {
    pub thinking: Option<bool>,
    pub sampling: SamplingChoice,
}

/// The family of a member that is no model here but an endpoint elsewhere.
pub const REMOTE: &str = "remote";

impl MemberPlan {
    /// The entry for `agent` on a checkpoint.
    pub fn local(agent: &str, model: &Description, asked: MemberChoice) -> MemberPlan {
        let MemberChoice { thinking, sampling } = asked;
        let Sampling { temperature, top_k, top_p, min_p, repetition_penalty, .. } =
            sampling.over(model.generation.sampling);
        MemberPlan {
            agent: agent.to_owned(),
            backbone: model.checkpoint.name.clone(),
            path: model.checkpoint.directory.display().to_string(),
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
            seed: sampling.seed,
            max_tokens: sampling.max_tokens,
            eos_ids: model.generation.eos_ids.clone(),
            context: model.context,
        }
    }

    /// The entry for `agent` at an endpoint, of which nothing is known but its address.
    pub fn remote(agent: &str, address: &str, asked: MemberChoice) -> MemberPlan {
        let MemberChoice { thinking, sampling } = asked;
        let unknown = || "unknown".to_owned();
        MemberPlan {
            agent: agent.to_owned(),
            backbone: address.to_owned(),
            path: address.to_owned(),
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
            seed: sampling.seed,
            max_tokens: sampling.max_tokens,
            ..MemberPlan::default()
        }
    }

    /// The choice that repeats the member's sampling, even where its model's defaults have changed.
    pub fn sampling(&self) -> SamplingChoice {
        let set = SamplingChoice {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            seed: self.seed,
            max_tokens: self.max_tokens,
        };
        let off = SamplingChoice {
            top_p: Some(1.0),
            top_k: Some(0),
            min_p: Some(0.0),
            ..SamplingChoice::default()
        };
        if self.is_remote() { set } else { set.or(off) }
    }

    /// Whether the member is an endpoint: what it said cannot be generated again.
    pub fn is_remote(&self) -> bool {
        self.family == REMOTE
    }
}

impl Plan {
    pub fn which(&self) -> Which {
        self.system_file.clone().map_or_else(|| Which::Named(self.system.clone()), Which::File)
    }

    /// The system as one asks for it: plans of MedAgentBoard's baselines have their code's names.
    pub fn system_name(&self) -> &str {
        let entry = SystemEntry::named(&self.system).ok().filter(|_| self.system_file.is_none());
        entry.map_or(&self.system, |entry| entry.name)
    }

    /// Why the run cannot be generated again, where it cannot.
    pub fn unrepeatable(&self) -> Option<String> {
        if self.engine.device_kind.ends_with(FAST) {
            return Some("--fast: none of it can be generated again byte for byte".to_owned());
        }
        let member = self.panel.iter().find(|member| member.is_remote())?;
        let address = &member.backbone;
        Some(format!(
            "{address} is elsewhere: what it says cannot be generated again byte for byte"
        ))
    }

    /// That a run of MedPrompt shows no chains of thought, where it shows none: they are half of its method.
    pub fn without_reasons(&self) -> Option<&'static str> {
        let files = &self.exemplars.as_ref()?.files;
        let lacks = self.system == "medprompt" && files.iter().all(|file| file.what != "reasons");
        lacks.then_some("medprompt without its chains of thought: the exemplars' reasons are made of their gold (see `wardround data reasons`)")
    }

    /// Where the plan of a run lies.
    ///
    /// # Errors
    /// A directory that has none.
    pub fn find(directory: &Path) -> Result<PathBuf, RunError> {
        let path = directory.join(FILE);
        match fs_err::exists(&path)? {
            true => Ok(path),
            false => Err(RunError::NoPlan { path: directory.to_owned() }),
        }
    }

    pub fn load(path: &Path) -> Result<Plan, RunError> {
        Plan::parse(&outside::file(path)?, path)
    }

    /// Writes the plan, readable by its owner alone, and gives the sha256 of its bytes, which anchors the logs.
    pub fn save(&self, path: &Path) -> Result<String, RunError> {
        let text = self.to_toml()?;
        whole_file::write_private(path, text.as_bytes())?;
        Ok(sha256(text.as_bytes()))
    }

    /// Reads the bytes of the file `path`.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Plan, RunError> {
        let unreadable =
            |reason: String| RunError::UnreadablePlan { path: path.to_owned(), reason };
        let text = str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        refuse_other_schema(text, path)?;
        outside::toml(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = 1 + text.get(..start).unwrap_or(text).matches('\n').count();
            unreadable(format!("line {line}: {}", error.message()))
        })
    }

    /// The bytes of plan.toml. Errors when they would not read back equal, as a NaN would not.
    fn to_toml(&self) -> Result<String, RunError> {
        let unwritable = |reason: String| RunError::UnwritablePlan { reason };
        let text = toml::to_string(self).map_err(|error| unwritable(error.to_string()))?;
        match outside::toml::<Plan>(&text) {
            Ok(read) if read == *self => Ok(text),
            Ok(_) => Err(unwritable("a value changes".to_owned())),
            Err(error) => Err(unwritable(error.to_string())),
        }
    }

    /// The fields in which `other` would run differently, this plan's value first.
    ///
    /// Left out is what changes no byte of an answer: `created_at`, `host`, of `engine` all but `device_kind`, and
    /// where files lie, for their sums tell whether they are the same; nor what of things that are gone had no effect.
    pub fn differences(&self, other: &Plan) -> Result<Vec<FieldDifference>, RunError> {
        Ok(compare::differences(&self.comparable()?, &other.comparable()?))
    }

    /// Errors where this plan would run differently from `planned`, which was read from `path`. A difference in version alone is accepted
    /// with `allow_version`.
    ///
    /// # Errors
    /// The differences.
    pub fn keep_to(
        &self,
        planned: &Plan,
        path: &Path,
        allow_version: bool,
    ) -> Result<(), RunError> {
        let path = path.to_owned();
        let (version, others): (Vec<_>, Vec<_>) = planned
            .differences(self)?
            .into_iter()
            .partition(|difference| difference.field == "version");
        if !others.is_empty() {
            let differences = others.iter().map(ToString::to_string).collect();
            return Err(RunError::PlanDiffers { path, differences });
        }
        match version.first() {
            Some(difference) if !allow_version => {
                Err(RunError::OtherVersion { path, difference: difference.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// With what is not compared as it is in every plan.
    fn comparable(&self) -> Result<Value, RunError> {
        let mut plan = self.without_gone();
        plan.created_at.clear();
        (plan.repeats_version, plan.prompts, plan.host) = (None, None, HostPlan::default());
        let device_kind = std::mem::take(&mut plan.engine.device_kind);
        plan.engine = EnginePlan { device_kind, ..EnginePlan::default() };
        plan.dataset.path.clear();
        plan.panel.iter_mut().for_each(|member| member.path.clear());
        if let Some(exemplars) = &mut plan.exemplars {
            exemplars.path.clear();
            exemplars.files.iter_mut().for_each(|file| file.path.clear());
        }
        if let Some(corpus) = &mut plan.corpus {
            corpus.paths.clear();
            // The ids cover what the encoder reads.
            (corpus.document_tokens, corpus.reranker_path, corpus.device) = (None, None, None);
        }
        compare::as_json(&plan)
            .map_err(|error| RunError::UnwritablePlan { reason: error.to_string() })
    }
}

/// A plan of another schema is reported as such, even where the rest of it cannot be parsed.
fn refuse_other_schema(text: &str, path: &Path) -> Result<(), RunError> {
    #[derive(Deserialize)]
    struct Numbered {
        #[serde(default)]
        schema: u32,
    }
    match outside::toml::<Numbered>(text) {
        Ok(Numbered { schema }) if schema != SCHEMA => {
            Err(RunError::Schema { path: path.to_owned(), found: schema })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
