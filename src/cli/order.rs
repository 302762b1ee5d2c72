//! What a run is asked to be, by flags or by a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ValueEnum;

use super::crew::Crew;
use super::options::MachineFlags;
use crate::cli::exit::Failure;
use crate::data::subset::Subset;
use crate::data::{Format, ItemKind};
use crate::experiment::plan::{MemberPlan, Plan};
use crate::experiment::shard::{Shard, ShardPlan};
use crate::hub::HubOptions;
use crate::model::WantedType;
use crate::systems::{Seat, SystemConfig};

/// What a run is asked to be.
pub struct Order {
    pub data: PathBuf,
    pub format: Format,
    pub subset: Subset,
    pub share: Share,
    pub runs: u32,
    /// One model for every seat, or as many as the system's panel has.
    pub panel: Vec<String>,
    /// Seats that have a model of their own, by agent.
    pub slots: BTreeMap<String, String>,
    pub protocol: SystemConfig,
    pub seed: u64,
    pub free: bool,
    pub prompts: Option<PathBuf>,
    pub machine: MachineFlags,
    pub max_in_flight: Option<usize>,
    pub hub: HubOptions,
}

/// Which of the subset's items run.
#[derive(Clone, Debug)]
pub enum Share {
    All,
    /// Those of a part.
    Shard(Shard),
    /// All: the subset is a part already, as its plan says.
    Planned(ShardPlan),
}

impl Order {
    /// The order that gives `plan` again on the machine at hand; what `machine` was told wins over the plan.
    ///
    /// # Errors
    /// A plan of another system, or with settings that this version does not know.
    pub fn from_plan(
        plan: &Plan,
        machine: MachineFlags,
        hub: HubOptions,
    ) -> Result<Order, Failure> {
        let context = plan
            .panel
            .iter()
            .map(|member| member.context)
            .max()
            .filter(|context| *context > 0);
        let max_batch = u16::try_from(plan.engine.max_batch).ok();
        let draft = u16::try_from(plan.engine.draft).ok();
        let mut machine = MachineFlags {
            context: machine
                .context
                .or(context.and_then(|context| u32::try_from(context).ok())),
            max_batch: machine.max_batch.or(max_batch),
            draft: machine.draft.or(draft),
            ..machine
        };
        // Members share one dtype unless it was left to each checkpoint.
        let local: Vec<&MemberPlan> = plan
            .panel
            .iter()
            .filter(|member| !member.is_remote())
            .collect();
        if let Some(member) = local.first() {
            let is_shared = local.iter().all(|other| other.dtype == member.dtype);
            if is_shared && machine.compute.dtype == WantedType::Auto {
                machine.compute.dtype = member.dtype.parse().map_err(Failure::from)?;
            }
            // They always share one quantisation.
            machine.compute.quant = member.quantisation.parse().map_err(Failure::from)?;
        }
        Ok(Order {
            data: plan.dataset.path.clone().into(),
            format: plan.dataset.format.parse()?,
            subset: Subset::Ids {
                path: "plan.toml".into(),
                ids: plan.dataset.items.clone(),
            },
            share: match plan.dataset.shard.clone() {
                Some(shard) => Share::Planned(shard),
                None => Share::All,
            },
            runs: plan.runs,
            panel: Vec::new(),
            slots: plan
                .panel
                .iter()
                .map(|member| (member.agent.clone(), member.path.clone()))
                .collect(),
            protocol: SystemConfig::from_table(&plan.system, &plan.settings)?,
            seed: plan.seed,
            free: plan.free,
            prompts: plan.prompts.clone().map(PathBuf::from),
            machine,
            max_in_flight: Some(plan.engine.max_in_flight),
            hub,
        })
    }

    /// The models of the order's seats, described.
    ///
    /// # Errors
    /// As [`Crew::describe`]; a panel that is not the system's size.
    pub fn crew(&self) -> Result<Crew, Failure> {
        Crew::describe(self.seat_models()?, &self.machine, &self.hub)
    }

    /// A system works on questions or on notes, and a format holds one of them.
    ///
    /// # Errors
    /// Items that the system does not take.
    pub fn refuse_other_items(&self) -> Result<(), Failure> {
        let wanted = self.protocol.entry.takes;
        let found = self.format.kind();
        if wanted == found {
            return Ok(());
        }
        let system = self.protocol.name();
        let verb = match wanted {
            ItemKind::Questions => "answers",
            ItemKind::Notes => "checks",
        };
        let formats = Format::value_variants().iter();
        let formats: Vec<&str> = formats
            .filter(|format| format.kind() == wanted)
            .map(|format| format.name())
            .collect();
        let mut hint = format!("{system} takes {}", formats.join(", "));
        let systems = SystemConfig::names(found);
        if !systems.is_empty() {
            hint += &format!("; {} fits {}", self.format, systems.join(", "));
        }
        let message = format!(
            "{system} {verb} {wanted}, and {} holds {found}",
            self.format
        );
        Err(Failure::usage(message, &hint))
    }

    /// The model of every seat.
    pub fn seat_models(&self) -> Result<Vec<&String>, Failure> {
        let (seats, models) = (self.protocol.seats(), self.protocol.models());
        if let Some(slot) = self
            .slots
            .keys()
            .find(|slot| seats.iter().all(|seat| seat.agent != **slot))
        {
            let agents: Vec<&str> = seats.iter().map(|seat| seat.agent.as_str()).collect();
            return Err(Failure::usage(
                format!("{} has no slot {slot}", self.protocol.name()),
                &format!("its slots are {}", agents.join(", ")),
            ));
        }
        if self.panel.len() > 1 && self.panel.len() != models {
            let (given, name) = (self.panel.len(), self.protocol.name());
            let hint = match models {
                1 => "give --panel one model".to_owned(),
                models => format!("give --panel {models} models, or one for all"),
            };
            let message = format!("a panel of {given} models, and {name} takes {models}");
            return Err(Failure::usage(message, &hint));
        }
        let model = |seat: &Seat| {
            let shared = self.panel.get(seat.model).or(self.panel.first());
            self.slots.get(&seat.agent).or(shared).ok_or_else(|| {
                let message = format!("no model was given for {}", seat.agent);
                Failure::usage(message, "give --panel, or --set slot.AGENT=MODEL")
            })
        };
        seats.iter().map(model).collect()
    }
}
