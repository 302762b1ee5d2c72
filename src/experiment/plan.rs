//! `plan.toml`: what was asked for, what was found before the first call, and the machine: enough to run it again.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use super::compare::{self, FieldDifference};
use super::error::RunError;
use super::exemplars::ExemplarPlan;
use super::hardware::Hardware;
use super::spec::{MOST_RUNS, Spec};
use super::whole_file;
use crate::console;
use crate::data::subset::Subset;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::hub::HubOptions;
use crate::ops::CANDLE;
use crate::outside;
use crate::panel::DecodingMode;
use crate::record::Schema;
use crate::retrieval::Searched;
use crate::systems::Which;
use crate::systems::file::SystemText;
use crate::systems::table::SystemEntry;

mod member;

pub use member::MemberPlan;

/// The plan's name in the run directory.
pub const FILE: &str = "plan.toml";

/// The plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub schema: Schema,
    #[serde(flatten)]
    pub found: Found,
    /// The spec that gives the run again, every seat and path in it named. `None` in a plan of an earlier version: its run is read, and not
    /// repeated.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Spec>>,
    #[serde(flatten)]
    pub host: Host,
}

/// All that the answers depend on, resolved. Two runs of equal ones by one binary give the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The version of wardround that wrote the plan.
    pub version: String,
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
    /// The GPU's compute capability or the CPU's instruction set: equal kinds give equal bytes.
    #[serde(default)]
    pub device_kind: String,
}

/// When, where and how fast it ran, which changes no byte of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// In UTC (RFC 3339).
    pub created_at: String,
    pub engine: EnginePlan,
    #[serde(rename = "host")]
    pub machine: HostPlan,
}

/// The questions of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetPlan {
    pub name: String,
    pub format: String,
    pub sha256: String,
    /// Over the run's dataset.jsonl.
    pub items_sha256: String,
    /// The ids that run, in order.
    pub items: Vec<String>,
}

/// What a run searches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorpusPlan {
    #[serde(flatten)]
    pub searched: Searched,
    /// Where the reranker cuts pairs; absent: where its card says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reranker_tokens: Option<usize>,
    /// By which prompts quote a passage: what the calls' messages refer to is put back by it.
    pub passage: String,
    /// Whether the run keeps the sums of passages alone, as earlier versions could; now always false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_passages: bool,
}

/// What the engines were told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnginePlan {
    pub device: String,
    /// Where plans of earlier versions have it.
    #[serde(default, skip_serializing)]
    pub(super) device_kind: String,
    pub threads: usize,
    pub max_batch: usize,
    /// Tokens that a sequence may draft a step.
    #[serde(default)]
    pub draft: usize,
    pub max_in_flight: usize,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    pub name: String,
    pub system: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// What held of the sandbox, in words; `None`: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// What was found is what a plan says to all who read it.
impl Deref for Plan {
    type Target = Found;

    fn deref(&self) -> &Found {
        &self.found
    }
}

/// A spec as this version writes it; what another one wrote is left aside.
fn known<'de, D: Deserializer<'de>>(asked: D) -> Result<Option<Box<Spec>>, D::Error> {
    Ok(toml::Value::deserialize(asked)?.try_into().ok().map(Box::new))
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
        let (kind, what) = (&self.device_kind, "none of it can be generated again byte for byte");
        // So earlier versions marked runs whose bits depended on the batch.
        if kind.ends_with(" fast") {
            return Some(format!("it is of an earlier version's fast mode: {what}"));
        }
        if kind.starts_with(CANDLE) {
            return Some(format!("{kind}: its bits depend on the batch, {what}"));
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

    /// The spec that gives the run again, of the items that were chosen; what `hardware` says wins.
    ///
    /// # Errors
    /// A plan of an earlier version, or one that no command writes.
    pub fn again(&self, hardware: Hardware, hub: HubOptions) -> Result<Spec, Failure> {
        let asked = self.asked.as_deref().cloned().ok_or(RunError::OlderPlan)?;
        if asked.runs > MOST_RUNS {
            let message =
                format!("plan.toml has runs = {}; {MOST_RUNS} at most are taken", asked.runs);
            return Err(Failure::usage(message, "no command writes so many"));
        }
        Ok(Spec {
            subset: Subset {
                listed: Some((FILE.into(), self.dataset.items.clone())),
                ..Subset::default()
            },
            hardware: hardware.with_kept(&asked.hardware),
            hub,
            ..asked
        })
    }

    /// Where the plan of a run lies.
    pub fn find(directory: &Path) -> Result<PathBuf, RunError> {
        let path = directory.join(FILE);
        match directory.is_dir() && fs_err::exists(&path)? {
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
        let unreadable = |reason: String| {
            let reason = format!("it is no plan: {reason}");
            RunError::Unreadable { path: path.to_owned(), reason }
        };
        let text = str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        let mut plan: Plan = outside::toml(text).map_err(unreadable)?;
        let older = std::mem::take(&mut plan.host.engine.device_kind);
        if plan.device_kind.is_empty() {
            plan.found.device_kind = older;
        }
        Ok(plan)
    }

    /// The bytes of plan.toml. Errors when they would not read back equal, as a NaN would not.
    pub fn to_toml(&self) -> Result<String, RunError> {
        let text = toml::to_string(self).map_err(|error| RunError::unloggable(FILE, error))?;
        let read: Plan = outside::toml(&text).map_err(|error| RunError::unloggable(FILE, error))?;
        let is_same = toml::to_string(&read).is_ok_and(|again| again == text);
        match is_same && read.found == self.found {
            true => Ok(text),
            false => Err(RunError::unloggable(FILE, "a value changes")),
        }
    }

    /// The fields in which `other` would run differently, this plan's value first.
    pub fn differences(&self, other: &Plan) -> Result<Vec<FieldDifference>, RunError> {
        let json = |plan: &Plan| {
            compare::as_json(&plan.found).map_err(|error| RunError::unloggable(FILE, error))
        };
        Ok(compare::differences(&json(self)?, &json(other)?))
    }

    /// Errors where this plan would run differently from `planned`, which was read from `path`. A difference in version alone is said, and
    /// no error where the run is not to be the same one (`is_same`).
    ///
    /// # Errors
    /// The differences; a plan of an earlier version.
    pub fn keep_to(&self, planned: &Plan, path: &Path, is_same: bool) -> Result<(), RunError> {
        if planned.asked.is_none() {
            return Err(RunError::OlderPlan);
        }
        let path = path.to_owned();
        let (version, others): (Vec<_>, Vec<_>) = planned
            .differences(self)?
            .into_iter()
            .partition(|difference| difference.field == "version");
        if !others.is_empty() {
            let differences = others.iter().map(ToString::to_string).collect();
            return Err(RunError::PlanDiffers { path, differences });
        }
        if let Some(difference) = version.first().map(ToString::to_string) {
            let error = RunError::OtherVersion { path, difference };
            match is_same {
                true => return Err(error),
                false => console::note(format!("note: {error}")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
