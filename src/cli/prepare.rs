//! From what was asked to a plan with every file read and summed, and from there to a panel that answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;

use super::crew::Crew;
use super::options::MachineFlags;
use crate::data::subset::Subset;
use crate::data::{self, DEMO_PATH, Dataset, Format, Item, ItemKind};
use crate::exit::Failure;
use crate::hub::HubOptions;
use crate::model::WantedType;
use crate::panel::recorder::Recorder;
use crate::panel::{Member, Panel, Source};
use crate::prompts::PromptSet;
use crate::run::clock;
use crate::run::plan::{DatasetPlan, EnginePlan, HostPlan, MemberPlan, Plan};
use crate::run::records::CallRecord;
use crate::run::shard::{Shard, ShardPlan};
use crate::systems::protocol::{Protocol, Seat};
use crate::systems::system::System;

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
    pub protocol: Protocol,
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
            protocol: Protocol::from_table(&plan.system, &plan.settings)?,
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

    /// Reads prompts and items. It comes first: a mistake in them should be told before any model is looked for.
    ///
    /// # Errors
    /// Whatever is missing or malformed; items that the system does not take.
    pub fn read(&self) -> Result<Inputs, Failure> {
        self.refuse_other_items()?;
        let mut dataset = data::load(&self.data, self.format)?;
        dataset.items = self.subset.choose(dataset.items)?;
        self.read_prompts(dataset)
    }

    /// As [`Order::read`], where the items are at hand.
    ///
    /// # Errors
    /// Prompts that are missing or malformed.
    pub fn read_prompts(&self, dataset: Dataset) -> Result<Inputs, Failure> {
        let prompts = match &self.prompts {
            Some(directory) => PromptSet::with_directory(directory)?,
            None => PromptSet::embedded(),
        };
        Ok(Inputs { prompts, dataset })
    }

    /// A system works on questions or on notes, and a format holds one of them.
    fn refuse_other_items(&self) -> Result<(), Failure> {
        let kind = |protocol: &Protocol| match protocol.takes_notes() {
            true => ItemKind::Notes,
            false => ItemKind::Questions,
        };
        let wanted = kind(&self.protocol);
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
        let systems: Vec<&str> = Protocol::NAMES
            .into_iter()
            .filter(|name| Protocol::named(name).is_ok_and(|other| kind(&other) == found))
            .collect();
        if !systems.is_empty() {
            hint += &format!("; {} fits {}", self.format, systems.join(", "));
        }
        let message = format!(
            "{system} {verb} {wanted}, and {} holds {found}",
            self.format
        );
        Err(Failure::usage(message, &hint))
    }

    /// Resolves everything that bears on the answers; `crew` holds the models of every seat.
    ///
    /// # Errors
    /// A panel that is not the system's size, a shard of too few items.
    pub fn prepare(self, inputs: Inputs, crew: &Crew) -> Result<Prepared, Failure> {
        let Inputs { prompts, dataset } = inputs;
        let mut items = dataset.items;
        for item in &mut items {
            if let Item::Question(question) = item {
                let image = question.image.take();
                question.image = image.map(|image| beside(&dataset.path, image));
            }
        }
        let shard = match &self.share {
            Share::All => None,
            Share::Planned(shard) => Some(shard.clone()),
            Share::Shard(part) => {
                let shard = ShardPlan::new(*part, &ids(&items))?;
                items = part.take(items);
                Some(shard)
            }
        };
        let models = self.seat_models()?;
        let models: Vec<usize> = models.iter().filter_map(|name| crew.index(name)).collect();
        let (max_batch, draft) = (self.machine.max_batch(), self.machine.draft());
        let (seats, thinking) = (self.protocol.seats(), self.protocol.decoding().thinking);
        let members = seats.iter().zip(&models);
        let panel: Vec<MemberPlan> = members
            .map(|(seat, &model)| crew.plan(model, &seat.agent, thinking))
            .collect();
        let plan = Plan {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: clock::utc_now(),
            system: self.protocol.name().to_owned(),
            synthetic: models.iter().all(|&model| crew.is_synthetic(model)),
            seed: self.seed,
            runs: self.runs,
            free: self.free,
            prompts_sha256: prompts.sha256(self.protocol.prompts()),
            prompts: self.prompts.as_deref().map(absolute).transpose()?,
            settings: self.protocol.to_table(),
            dataset: DatasetPlan {
                name: dataset.name,
                format: self.format.name().to_owned(),
                path: absolute(&dataset.path)?,
                sha256: dataset.sha256,
                items: ids(&items),
                shard,
            },
            panel,
            engine: EnginePlan {
                device: self.machine.compute.device.clone(),
                device_kind: crew.devices[0].kind(),
                threads: crew.devices[0].threads(),
                max_batch,
                draft,
                max_in_flight: self.max_in_flight.unwrap_or(2 * max_batch).max(1),
            },
            host: host(),
        };
        Ok(Prepared {
            protocol: self.protocol,
            prompts,
            items,
            notices: dataset
                .notices
                .into_iter()
                .chain(plan.unrepeatable())
                .collect(),
            plan,
            models,
        })
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

/// What an order reads before any model.
pub struct Inputs {
    prompts: PromptSet,
    /// The items are those that were chosen.
    dataset: Dataset,
}

/// A run that may start once its models are loaded.
pub struct Prepared {
    pub plan: Plan,
    pub protocol: Protocol,
    pub prompts: PromptSet,
    pub items: Vec<Item>,
    pub notices: Vec<String>,
    /// Which of the crew's models every seat has.
    pub models: Vec<usize>,
}

/// A run with its models loaded.
pub struct Started {
    pub plan: Plan,
    pub system: System,
    pub items: Vec<Item>,
    pub panel: Panel,
}

impl Prepared {
    /// Seats the crew, which [`Crew::start`] gave.
    ///
    /// # Errors
    /// A prompt that lost what is filled in.
    pub fn start(
        self,
        crew: &[Source],
        recorder: Recorder,
        stop: Arc<AtomicBool>,
        on_call: impl Fn(&CallRecord) + Send + Sync + 'static,
    ) -> Result<Started, Failure> {
        let agents = self.plan.panel.iter().map(|member| member.agent.clone());
        let members = agents.zip(self.models).map(|(agent, model)| Member {
            agent,
            source: crew[model].clone(),
        });
        let panel = Panel {
            members: members.collect(),
            recorder,
            run_seed: self.plan.seed,
            free: self.plan.free,
            thinking: self.protocol.decoding().thinking,
            max_tokens: self.protocol.decoding().max_tokens,
            ignore_eos: false,
            stop,
            on_call: Box::new(on_call),
        };
        Ok(Started {
            plan: self.plan,
            system: System::new(&self.protocol, &self.prompts)?,
            items: self.items,
            panel,
        })
    }
}

fn ids(items: &[Item]) -> Vec<String> {
    let ids = items.iter().map(|item| item.id().to_owned());
    ids.collect()
}

/// An image that a file of questions names: beside the file, unless it is an address.
fn beside(file: &Path, image: String) -> String {
    let is_address = ["http:", "https:", "data:"]
        .iter()
        .any(|scheme| image.starts_with(scheme));
    match file.parent() {
        Some(folder) if !is_address => folder.join(image).display().to_string(),
        _ => image,
    }
}

/// A path as a plan keeps it: it holds from whatever directory the run is taken up.
fn absolute(path: &Path) -> std::io::Result<String> {
    let is_built_in = path == Path::new(DEMO_PATH);
    let path = match is_built_in {
        true => path.to_owned(),
        false => std::path::absolute(path)?,
    };
    Ok(path.display().to_string())
}

/// The machine at hand.
pub fn host() -> HostPlan {
    let (cpu, memory_bytes) = match sysinfo::System::new() {
        Ok(mut system) => {
            system.refresh_cpu_all();
            system.refresh_memory();
            let cpu = system.cpus().first().map(|cpu| cpu.brand().to_owned());
            (cpu, system.total_memory())
        }
        Err(_) => (None, 0),
    };
    HostPlan {
        name: sysinfo::System::host_name().unwrap_or_else(|_| "unknown".to_owned()),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cpu: cpu.unwrap_or_else(|| "unknown".to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes,
    }
}
