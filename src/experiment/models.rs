//! The models that one run, or every run of a recipe, needs: each described once, then loaded once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use itertools::Itertools;

use super::hardware::Hardware;
use super::plan::MemberPlan;
use crate::calls::Store;
use crate::diagnosis::Failure;
use crate::engine::take_turns;
use crate::hub::{HubOptions, resolve};
use crate::model::Footprint;
use crate::ops::{Device, Machine};
use crate::panel::backbone::{Backbone, Description};
use crate::panel::memory::{DEFAULT_BATCH, MemoryPlan, plan_memory};
use crate::panel::remote::{Address, ApiKey, RemoteModel, RemoteOptions};
use crate::panel::{SamplingChoice, SharedResponder};

/// Models whose weights are not loaded yet, with the memory that each will take, and endpoints that were not contacted yet.
pub struct Models {
    pub descriptions: Vec<Description>,
    /// One per description.
    pub memory: Vec<MemoryPlan>,
    /// The encoders and rerankers that stay loaded beside them, on the first of their devices.
    pub beside: Vec<(String, Footprint)>,
    /// The models take turns on them.
    pub devices: Vec<Device>,
    /// Their indices follow those of the descriptions.
    endpoints: Vec<Arc<RemoteModel>>,
    /// Which of the models that [`Models::start`] gives a name means.
    indices: HashMap<String, usize>,
    /// Where the store of calls lies.
    calls: Option<PathBuf>,
    /// See [`Hardware::serves`].
    serves: bool,
}

/// Loaded models, and the store of their calls.
#[derive(Default)]
pub struct Loaded {
    pub models: Vec<SharedResponder>,
    /// Those of them that are here.
    pub backbones: Vec<Arc<Backbone>>,
    pub calls: Arc<Store>,
}

impl Models {
    /// Reads the configurations of the models in `names`, and checks that their memory, with that of what stays loaded `beside` them, is
    /// free on their devices.
    ///
    /// # Errors
    /// Whatever is missing, malformed, or does not fit in memory.
    pub fn describe<'a>(
        names: impl IntoIterator<Item = &'a String>,
        hardware: &Hardware,
        hub: &HubOptions,
        beside: impl FnOnce(&[Device]) -> Result<Vec<(String, Footprint)>, Failure>,
    ) -> Result<Models, Failure> {
        let devices = hardware.compute.on.devices()?;
        let mut descriptions: Vec<Description> = Vec::new();
        let mut indices = HashMap::new();
        let (remote, local): (Vec<&String>, Vec<&String>) =
            names.into_iter().unique().partition(|name| Address::is_meant_by(name));
        for name in local {
            let checkpoint = resolve(name, hub)?;
            let known = descriptions
                .iter()
                .position(|description| description.checkpoint.directory == checkpoint.directory);
            let index = known.unwrap_or(descriptions.len());
            if index == descriptions.len() {
                let (weights, context) = (hardware.compute.precision(), hardware.context());
                let kind = devices[0].machine();
                descriptions.push(Description::read(checkpoint, weights, kind, context)?);
            }
            indices.insert(name.clone(), index);
        }
        let endpoints =
            remote.iter().map(|name| open_endpoint(name, hardware, hub)).try_collect()?;
        indices.extend(remote.into_iter().cloned().zip(descriptions.len()..));
        let borrowed: Vec<&Description> = descriptions.iter().collect();
        let beside = beside(&devices)?;
        if devices[0].machine() == Machine::Candle {
            hardware.refuse_calls("what candle computes depends on the batch")?;
        }
        Ok(Models {
            calls: hardware.calls.clone(),
            serves: hardware.serves,
            memory: plan_memory(&borrowed, &devices, hardware.limits(), &beside)?,
            descriptions,
            beside,
            devices,
            endpoints,
            indices,
        })
    }

    /// Sequences that each engine runs at once.
    pub fn max_batch(&self, hardware: &Hardware) -> usize {
        let planned = self.memory.first().map(|memory| memory.options.max_batch);
        planned.or(hardware.max_batch).unwrap_or(DEFAULT_BATCH)
    }

    /// Which of the sources that [`Models::start`] gives a name means; `None` for one that was not described.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    /// The plan's entry for `agent` on the model of this index.
    pub fn plan(
        &self,
        index: usize,
        agent: &str,
        thinking: Option<bool>,
        sampling: SamplingChoice,
    ) -> MemberPlan {
        match self.descriptions.get(index) {
            Some(description) => MemberPlan::local(agent, description, thinking, sampling),
            None => MemberPlan::remote(agent, &self.place(index), thinking, sampling),
        }
    }

    /// The directory or the address of the model of this index.
    pub fn place(&self, index: usize) -> String {
        match self.descriptions.get(index) {
            Some(description) => description.checkpoint.directory.display().to_string(),
            None => self.endpoints[index - self.descriptions.len()].address().to_string(),
        }
    }

    /// Loads the weights and starts one engine per description; looks up the endpoints.
    pub fn start(self) -> Result<Loaded, Failure> {
        for endpoint in &self.endpoints {
            endpoint.look_up(&AtomicBool::new(false))?;
        }
        let calls = self.calls.as_deref().map(Store::open).transpose()?;
        let calls = Arc::new(calls.unwrap_or_default());
        let described = self.descriptions.into_iter().zip(self.memory);
        let started =
            described.zip(self.devices.iter().cycle()).map(|((description, memory), device)| {
                let options = memory.options;
                Ok(Arc::new(Backbone::start(description, device, options, calls.clone())?))
            });
        let backbones: Vec<Arc<Backbone>> = started.collect::<Result<_, Failure>>()?;
        if !self.serves {
            // Whoever is served waits for nobody else's batch.
            for place in 0..self.devices.len() {
                let here = backbones.iter().skip(place).step_by(self.devices.len());
                take_turns(here.map(|backbone| &backbone.engine));
            }
        }
        let endpoints = self.endpoints.into_iter().map(|model| model as SharedResponder);
        let local = backbones.iter().map(|backbone| backbone.clone() as SharedResponder);
        Ok(Loaded { models: local.chain(endpoints).collect(), backbones, calls })
    }
}

fn open_endpoint(
    name: &str,
    hardware: &Hardware,
    hub: &HubOptions,
) -> Result<Arc<RemoteModel>, Failure> {
    let address = Address::parse(name)?;
    let default = RemoteOptions::default();
    let options = RemoteOptions {
        attempts: hardware.remote_attempts.unwrap_or(default.attempts),
        offline: hub.offline,
        key: ApiKey::capture(&address)?,
        proxy: hub.proxy.clone(),
        max_in_flight: hardware.max_batch.unwrap_or(DEFAULT_BATCH),
        ..default
    };
    Ok(Arc::new(RemoteModel::open(&address, options)?))
}
