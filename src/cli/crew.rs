//! The models that one run, or every run of a recipe, needs: each described once, then loaded once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::options::MachineFlags;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::plan::MemberPlan;
use crate::hub::{HubOptions, resolve};
use crate::ops::Device;
use crate::panel::backbone::{Backbone, Description};
use crate::panel::memory::{BatchLimits, MemoryPlan, plan_memory};
use crate::panel::remote::{Address, ApiKey, RemoteError, RemoteModel, RemoteOptions};
use crate::panel::{PanelError, Source};

/// Models that were read but for their weights, and what each will take; endpoints that were not asked yet.
pub struct Crew {
    pub descriptions: Vec<Description>,
    /// One a description.
    pub allotments: Vec<MemoryPlan>,
    /// The models take turns on them.
    pub devices: Vec<Device>,
    /// They count on behind the descriptions.
    endpoints: Vec<Arc<RemoteModel>>,
    /// Which model a name means.
    indices: HashMap<String, Index>,
}

/// A model of a crew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    Local(usize),
    Remote(usize),
}

impl Crew {
    /// Reads everything small of the models that `names` name, and sets their memory against what is free.
    ///
    /// # Errors
    /// Whatever is missing, malformed, or does not fit in memory.
    pub fn describe<'a>(
        names: impl IntoIterator<Item = &'a String>,
        machine: &MachineFlags,
        hub: &HubOptions,
    ) -> Result<Crew, Failure> {
        let devices = machine.compute.devices()?;
        let mut descriptions: Vec<Description> = Vec::new();
        let mut endpoints = Vec::new();
        let mut indices = HashMap::new();
        for name in names {
            if indices.contains_key(name) {
                continue;
            }
            if Address::is_meant_by(name) {
                endpoints.push(open_endpoint(name, machine, hub)?);
                indices.insert(name.clone(), Index::Remote(endpoints.len() - 1));
                continue;
            }
            let checkpoint = resolve(name, hub)?;
            let known = descriptions
                .iter()
                .position(|description| description.checkpoint.directory == checkpoint.directory);
            let index = match known {
                Some(index) => index,
                None => {
                    let (weights, context) = (machine.compute.weights(), machine.context());
                    let kind = devices[0].machine();
                    descriptions.push(Description::read(checkpoint, weights, kind, context)?);
                    descriptions.len() - 1
                }
            };
            indices.insert(name.clone(), Index::Local(index));
        }
        let borrowed: Vec<&Description> = descriptions.iter().collect();
        let batch = BatchLimits {
            sequences: machine.max_batch(),
            draft: machine.draft(),
        };
        let budget = machine.kv_budget();
        Ok(Crew {
            allotments: plan_memory(&borrowed, &devices, batch, budget)?,
            descriptions,
            devices,
            endpoints,
            indices,
        })
    }

    /// Which of the sources that [`Crew::start`] gives a name means; `None` for one that was not described.
    pub fn index(&self, name: &str) -> Option<usize> {
        Some(match *self.indices.get(name)? {
            Index::Local(index) => index,
            Index::Remote(index) => self.descriptions.len() + index,
        })
    }

    /// The plan's entry for `agent` on the model of this index.
    pub fn plan(&self, index: usize, agent: &str, thinking: bool) -> MemberPlan {
        match self.descriptions.get(index) {
            Some(description) => description.plan(agent, thinking),
            None => {
                let endpoint = &self.endpoints[index - self.descriptions.len()];
                MemberPlan::remote(agent, &endpoint.address().to_string(), thinking)
            }
        }
    }

    /// Whether a model answers noise.
    pub fn is_synthetic(&self, index: usize) -> bool {
        let description = self.descriptions.get(index);
        description.is_some_and(|description| description.is_synthetic)
    }

    /// Loads the weights and starts the engines, one a description; looks the endpoints up.
    ///
    /// # Errors
    /// A tensor that is missing or of another shape; an engine that cannot start; an endpoint that does not answer.
    pub fn start(self) -> Result<Vec<Source>, Failure> {
        for endpoint in &self.endpoints {
            let served = endpoint
                .look_up(&AtomicBool::new(false))
                .map_err(PanelError::from)?;
            if served.is_listed == Some(false) {
                let address = endpoint.address();
                console::note(format!("note: {address} does not list the model"));
            }
        }
        let local = self
            .descriptions
            .into_iter()
            .zip(self.allotments)
            .zip(self.devices.iter().cycle())
            .map(|((description, allotment), device)| {
                let backbone = Backbone::start(description, device, allotment.options)?;
                Ok(Arc::new(backbone) as Source)
            });
        let remote = self
            .endpoints
            .into_iter()
            .map(|endpoint| Ok(endpoint as Source));
        local.chain(remote).collect()
    }
}

fn open_endpoint(
    name: &str,
    machine: &MachineFlags,
    hub: &HubOptions,
) -> Result<Arc<RemoteModel>, Failure> {
    let open = || -> Result<RemoteModel, RemoteError> {
        let address = Address::parse(name)?;
        let options = RemoteOptions {
            offline: hub.offline_reason(),
            key: ApiKey::capture(&address)?,
            ..machine.remote.options()
        };
        RemoteModel::open(&address, options)
    };
    Ok(Arc::new(open().map_err(PanelError::from)?))
}
