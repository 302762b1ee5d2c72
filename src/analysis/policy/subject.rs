//! What a policy is bound to: all that an answer's bytes depend on, but for the case and the seed.

use serde::{Deserialize, Serialize};

use crate::diagnosis::Failure;
use crate::experiment::case::Seated;
use crate::experiment::difference::{FieldDifference, as_json, differences};
use crate::experiment::plan::{MemberPlan, Plan};
use crate::panel::DecodingMode;
use crate::systems::file::SystemText;

/// Subjects that are equal answer equal cases alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub version: String,
    pub system: String,
    pub device_kind: String,
    pub decoding: DecodingMode,
    pub prompts_sha256: String,
    /// The sums of what it searches and shows.
    pub files: Vec<String>,
    pub settings: toml::Table,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_file: Option<SystemText>,
    /// In panel order; where a model lies, and under which name, is left out.
    pub members: Vec<MemberPlan>,
}

impl Subject {
    /// # Errors
    /// A member that is an endpoint: nothing says when its model changes. A run with `--fast`.
    pub fn of(plan: &Plan) -> Result<Subject, Failure> {
        if let Some(reason) = plan.unrepeatable() {
            let hint =
                "a policy is bound to weights: calibrate runs of local models, without --fast";
            return Err(Failure::usage(reason, hint));
        }
        Ok(Subject {
            version: plan.version.clone(),
            system: plan.system.clone(),
            device_kind: plan.engine.device_kind.clone(),
            decoding: plan.decoding,
            prompts_sha256: plan.prompts_sha256.clone(),
            files: plan.files_read(),
            settings: plan.settings.clone(),
            system_file: plan.system_file.clone(),
            members: plan.panel.iter().map(wherever).collect(),
        })
    }

    /// Of a system whose models are loaded.
    pub fn of_seated(seated: &Seated) -> Subject {
        let kinds = seated.seats.iter().map(|seat| &seat.backbone.device_kind);
        Subject {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            system: seated.config.plan_name().to_owned(),
            // As a plan has it: the longest name is the one with the instruction set.
            device_kind: kinds.max_by_key(|kind| kind.len()).cloned().unwrap_or_default(),
            decoding: seated.decoding(),
            prompts_sha256: seated.prompts_sha256.clone(),
            files: seated.files.clone(),
            settings: seated.config.table.clone(),
            system_file: seated.config.file().cloned(),
            members: seated.seats.iter().map(|seat| wherever(&seat.plan)).collect(),
        }
    }

    /// The fields in which `other` is another subject, this one's value first.
    ///
    /// # Errors
    /// Values that cannot be written as JSON.
    pub fn differences(&self, other: &Subject) -> Result<Vec<FieldDifference>, Failure> {
        let unreadable = |error: serde_json::Error| Failure::mismatch(error.to_string());
        let json = |subject: &Subject| as_json(subject).map_err(unreadable);
        Ok(differences(&json(self)?, &json(other)?))
    }
}

fn wherever(member: &MemberPlan) -> MemberPlan {
    MemberPlan {
        backbone: String::new(),
        path: String::new(),
        repository: None,
        revision: None,
        context: 0,
        ..member.clone()
    }
}
