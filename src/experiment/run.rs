//! A run that is resolved: from a spec to a plan with every file read and summed, and from there to a panel that answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::exemplars::{ExemplarPlan, Shown};
use super::library::Shared;
use super::models::Models;
use super::plan::{CorpusPlan, DatasetPlan, EnginePlan, Found, Host, HostPlan, MemberPlan, Plan};
use super::spec::Spec;
use super::{texts, utc_now, versions};
use crate::data::{self, DEMO_PATH, Dataset, Item};
use crate::diagnosis::Failure;
use crate::hub::DatasetCard;
use crate::ops::PAGE;
use crate::panel::recorder::Recorder;
use crate::panel::seed::call_seed;
use crate::panel::{CallSettings, Member, Panel, SamplingChoice, SharedResponder};
use crate::prompts::PromptSet;
use crate::record::{CallKey, ItemLine, Schema};
use crate::retrieval::{Retrieve, Retriever, Searched};
use crate::sandbox;
use crate::systems::decoding::OptionOrder;
use crate::systems::{System, Task};

impl Spec {
    /// All that comes before the models are loaded, of a run that shares nothing with others.
    pub fn prepare(self) -> Result<(Run, Models), Failure> {
        let mut shared = Shared::default();
        let inputs = self.read(&mut shared)?;
        let models = self.describe_models(&mut shared)?;
        Ok((self.resolve(inputs, &models, &mut shared)?, models))
    }

    /// Reads prompts and items. It comes first: a mistake in them should be told before any model is looked for.
    ///
    /// # Errors
    /// Whatever is missing or malformed; items that the system does not take.
    pub fn read(&self, shared: &mut Shared) -> Result<Inputs, Failure> {
        self.refuse_other_items()?;
        let mut dataset = data::load(&self.data, self.format).map_err(|error| {
            match DatasetCard::remedy(&self.data).filter(|_| !self.data.exists()) {
                Some(remedy) => Failure::usage(error.to_string(), &remedy),
                None => error.into(),
            }
        })?;
        dataset.items = self.subset.choose(dataset.items)?;
        if let Some(shard) = self.shard {
            dataset.items = shard.take(dataset.items);
        }
        if self.config.decoding.option_order == OptionOrder::Permuted {
            self.permute_options(&mut dataset)?;
        }
        self.read_beside(dataset, shared)
    }

    fn permute_options(&self, dataset: &mut Dataset) -> Result<(), Failure> {
        let (name, seed) = (&dataset.name, self.seed);
        let drawn = |item: &str| {
            let (dataset, item) = (name.clone(), item.to_owned());
            let purpose = "options".to_owned();
            call_seed(seed, &CallKey { dataset, item, purpose, ..Default::default() })
        };
        let mut stayed = 0;
        for item in &mut dataset.items {
            match item {
                Item::Question(question) => {
                    stayed += usize::from(!question.permute_options(drawn(&question.id)));
                }
                Item::Note(_) => {
                    return Err(Failure::usage(
                        "option_order=permuted, and a note has no options",
                        "leave option_order out, or run a system of questions",
                    ));
                }
            }
        }
        if stayed > 0 {
            let all = dataset.items.len();
            dataset.notices.push(format!(
                "questions whose options stay in their order, for one names others: {stayed} of {all}"
            ));
        }
        Ok(())
    }

    /// As [`Spec::read`], where the items are at hand.
    pub fn read_beside(&self, dataset: Dataset, shared: &mut Shared) -> Result<Inputs, Failure> {
        let prompts = PromptSet::open(self.prompts.as_deref())?;
        let Shown { exemplars, plan } = self.read_exemplars(shared, &dataset)?;
        let system = self.config.build(&prompts, &exemplars)?;
        Ok(Inputs { prompts, dataset, system, exemplar_plan: plan })
    }

    /// Resolves everything that bears on the answers; `models` holds those of every seat.
    pub fn resolve(
        self,
        inputs: Inputs,
        models: &Models,
        shared: &mut Shared,
    ) -> Result<Run, Failure> {
        let Inputs { prompts, dataset, system, exemplar_plan } = inputs;
        let items = dataset.items;
        let names = self.slot_models()?;
        let seated: Vec<usize> = names.iter().filter_map(|name| models.index(name)).collect();
        let (max_batch, draft) = (models.max_batch(&self.hardware), self.hardware.draft());
        let (slots, thinking) = (self.config.slots(), self.config.decoding.thinking.told());
        let sampling: Vec<SamplingChoice> =
            slots.iter().map(|slot| self.sampling_of(slot)).collect();
        let members = slots.iter().zip(&seated).zip(&sampling);
        let members = members
            .map(|((slot, &model), &sampling)| models.plan(model, &slot.agent, thinking, sampling));
        let panel: Vec<MemberPlan> = members.collect();
        for (member, &model) in panel.iter().zip(&seated) {
            if let Some(own) = models.descriptions.get(model) {
                self.config.decoding.check_local(&member.agent, own.chat.lets_think())?;
            }
        }
        let library = self.library(&models.devices, shared)?;
        let corpus = match (&self.corpus, &library) {
            (Some(spec), Some(library)) => {
                // No length of a chunk is in a plan.
                let searched = Searched { longest_chunk_chars: 0, ..library.searched().clone() };
                Some(CorpusPlan {
                    reranker_tokens: spec.reranker_tokens.filter(|_| searched.reranker.is_some()),
                    passage: self.config.passage(&prompts)?,
                    searched,
                    no_passages: false,
                })
            }
            _ => None,
        };
        let found = Found {
            version: versions::THIS.to_owned(),
            system: self.config.entry.plan_name.to_owned(),
            synthetic: seated.iter().all(|&model| {
                models.descriptions.get(model).is_some_and(|model| model.is_synthetic)
            }),
            seed: self.seed,
            runs: self.runs,
            decoding: self.decoding(),
            prompts_sha256: self.config.prompts_sha256(&prompts),
            prompts: self.prompts.as_deref().map(absolute).transpose()?,
            settings: self.config.table.clone(),
            system_file: self.config.file().cloned(),
            dataset: DatasetPlan {
                name: dataset.name,
                format: self.format.name().to_owned(),
                sha256: dataset.sha256,
                items_sha256: texts::sha256(&items)?,
                items: items.iter().map(|item| item.id().to_owned()).collect(),
            },
            panel,
            corpus,
            exemplars: exemplar_plan,
            device_kind: models.devices[0]
                .kind(models.descriptions.iter().map(|model| model.precision)),
        };
        let engine = EnginePlan {
            device: self.hardware.compute.on.device.clone(),
            threads: models.devices[0].threads(),
            max_batch,
            draft,
            max_in_flight: Spec::items_in_flight(self.config.search().is_some(), max_batch, models),
            ..EnginePlan::default()
        };
        let plan = Plan {
            schema: Schema,
            found,
            asked: Some(Box::new(self.whole(models)?)),
            host: Host { created_at: utc_now(), engine, machine: host() },
        };
        let notices = dataset.notices.into_iter().chain(plan.unrepeatable());
        let run = Run {
            notices: notices.chain(plan.without_reasons().map(str::to_owned)).collect(),
            most_calls: self.config.max_calls(),
            settings: self.config.call_settings(plan.decoding),
            plan,
            system,
            items,
            seats: seated.into_iter().zip(sampling).collect(),
            library,
        };
        run.refuse_long_prompts()?;
        Ok(run)
    }

    /// The number of items in flight: twice the batch, so that a batch is always full. A searching system's prompts grow step by
    /// step, each a prefix of the next: more items than the KV cache holds would evict one another's prefixes.
    fn items_in_flight(searches: bool, max_batch: usize, models: &Models) -> usize {
        let most = 2 * max_batch;
        if !searches {
            return most;
        }
        // An item takes about half of the context.
        let held = models.memory.iter().zip(&models.descriptions).map(|(memory, description)| {
            memory.options.pages * PAGE / (description.context / 2).max(1)
        });
        held.min().unwrap_or(most).clamp(1, most)
    }
}

/// What was read of a spec: everything but its models.
pub struct Inputs {
    prompts: PromptSet,
    /// The items are those that were chosen.
    dataset: Dataset,
    system: Box<dyn System>,
    exemplar_plan: Option<ExemplarPlan>,
}

impl Inputs {
    /// What was chosen; no item in a shard of more than there are.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }
}

/// Everything resolved: a run that may start once its models are loaded.
pub struct Run {
    pub plan: Plan,
    pub system: Box<dyn System>,
    pub items: Vec<Item>,
    pub notices: Vec<String>,
    /// Calls on an item, at most.
    pub most_calls: u32,
    pub settings: CallSettings,
    /// Which of the described models every seat has, and how it samples.
    seats: Vec<(usize, SamplingChoice)>,
    /// What the system searches, where it searches.
    pub library: Option<Arc<Retriever>>,
}

impl Run {
    /// Over all repetitions, at most.
    pub fn calls(&self) -> u64 {
        self.items.len() as u64 * u64::from(self.plan.runs) * u64::from(self.most_calls)
    }

    /// Gives every seat its model, of those that [`Models::start`] gave.
    pub fn panel(
        &self,
        loaded: &[SharedResponder],
        recorder: Box<dyn Recorder>,
        stop: Arc<AtomicBool>,
    ) -> Result<Panel, Failure> {
        let members = self.plan.panel.iter().zip(&self.seats);
        let members = members.map(|(member, &(model, sampling))| Member {
            agent: member.agent.clone(),
            source: loaded[model].clone(),
            sampling,
        });
        Ok(Panel {
            members: members.collect(),
            recorder,
            run_seed: self.plan.seed,
            settings: self.settings.clone(),
            salt: None,
            stop,
            retriever: self.library.as_ref().map(Retriever::loaded).transpose()?,
        })
    }

    /// What the panel makes of an item; an error that concerns the item alone is an outcome.
    ///
    /// # Errors
    /// What concerns more than the item.
    pub fn answer(&self, panel: &Panel, item: &Item, run: u32) -> Result<ItemLine, Failure> {
        let task = Task { panel, dataset: &self.plan.dataset.name, item, run };
        match self.system.answer(&task) {
            Err(error) if error.concerns_item() => Ok(task.failure(&error)),
            answered => Ok(answered?),
        }
    }
}

/// A path as a plan keeps it: absolute, so that the run can be resumed from any directory, unless it names a built-in file.
pub fn absolute(path: &Path) -> std::io::Result<String> {
    let path = match path == Path::new(DEMO_PATH) {
        true => path.to_owned(),
        false => std::path::absolute(path)?,
    };
    path.into_os_string().into_string().map_err(|path| {
        let message = format!("{} is not UTF-8: no plan could name it again", path.display());
        std::io::Error::new(std::io::ErrorKind::InvalidInput, message)
    })
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
        sandbox: sandbox::held(),
    }
}
