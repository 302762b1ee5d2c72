//! The models that one run, or every run of a recipe, needs: each described once, then loaded once.

use std::collections::HashMap;
use std::sync::Arc;

use super::options::MachineFlags;
use crate::exit::Failure;
use crate::hub::{HubOptions, resolve};
use crate::ops::Device;
use crate::panel::Source;
use crate::panel::backbone::{Backbone, Description};
use crate::panel::memory::{Allotment, plan_memory};

/// Models that were read but for their weights, and what each will take.
pub struct Crew {
    pub descriptions: Vec<Description>,
    /// One a description.
    pub allotments: Vec<Allotment>,
    /// The models take turns on them.
    pub devices: Vec<Device>,
    /// Which description a name means.
    indices: HashMap<String, usize>,
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
        let mut indices = HashMap::new();
        for name in names {
            if indices.contains_key(name) {
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
            indices.insert(name.clone(), index);
        }
        let borrowed: Vec<&Description> = descriptions.iter().collect();
        let (batch, budget) = ((machine.max_batch(), machine.draft()), machine.kv_budget());
        Ok(Crew {
            allotments: plan_memory(&borrowed, &devices, batch, budget)?,
            descriptions,
            devices,
            indices,
        })
    }

    /// Which description a name means; `None` for one that was not described.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    /// Loads the weights and starts the engines, one a description.
    ///
    /// # Errors
    /// A tensor that is missing or of another shape; an engine that cannot start.
    pub fn start(self) -> Result<Vec<Source>, Failure> {
        self.descriptions
            .into_iter()
            .zip(self.allotments)
            .zip(self.devices.iter().cycle())
            .map(|((description, allotment), device)| {
                let backbone = Backbone::start(description, device, allotment.options)?;
                Ok(Source::Local(Arc::new(backbone)))
            })
            .collect()
    }
}
