//! The memory that a run's retriever takes beside its panel, so that both are planned together.

use super::hardware::Hardware;
use super::library::is_equal;
use super::spec::Spec;
use crate::diagnosis::Failure;
use crate::ops::Device;
use crate::panel::memory::{AuxiliaryModel, AuxiliaryModels};
use crate::retrieval::{self, RetrieverOptions};

/// The most memory that the retrievers of these runs take at any time; each is held from the first run that uses it to the last.
///
/// # Errors
/// A corpus where none is searched, none where one is; a corpus or a model that cannot be read.
pub fn auxiliary_models(
    specs: &[&Spec],
    hardware: &Hardware,
    devices: &[Device],
) -> Result<AuxiliaryModels, Failure> {
    let wanted = specs.iter().map(|spec| spec.retriever_options(devices));
    let wanted = wanted.collect::<Result<Vec<Option<RetrieverOptions>>, _>>()?;
    let mut retrievers: Vec<Held> = Vec::new();
    for (run, (spec, options)) in specs.iter().zip(&wanted).enumerate() {
        let Some(options) = options else { continue };
        match retrievers.iter_mut().find(|held| is_equal(held.options, options)) {
            Some(held) => held.last = run,
            None => {
                let memory = spec.auxiliary_models(options, hardware, devices)?;
                retrievers.push(Held { options, memory, first: run, last: run });
            }
        }
    }
    let at_run = |run: usize| {
        let held = retrievers.iter().filter(move |held| (held.first..=held.last).contains(&run));
        held.fold(AuxiliaryModels::default(), |all, held| all.and(&held.memory))
    };
    Ok((0..specs.len()).map(at_run).max_by_key(AuxiliaryModels::total).unwrap_or_default())
}

/// A retriever of several runs.
struct Held<'a> {
    options: &'a RetrieverOptions,
    memory: AuxiliaryModels,
    first: usize,
    last: usize,
}

impl Spec {
    fn auxiliary_models(
        &self,
        options: &RetrieverOptions,
        hardware: &Hardware,
        devices: &[Device],
    ) -> Result<AuxiliaryModels, Failure> {
        let (models, mapped) = retrieval::memory(options)?;
        let named = self.corpus.as_ref().and_then(|corpus| corpus.device.as_ref());
        // `cuda` is short for the first GPU.
        let whole = |name: &str| if name == "cuda" { "cuda:0".to_owned() } else { name.to_owned() };
        let mut names = hardware.compute.on.device.split(',').map(|name| whole(name.trim()));
        let place = match named {
            None => Some(0),
            Some(name) => names.position(|own| own == whole(name)),
        };
        // Devices without memory of their own use the host's.
        let on_host = |device: &Device| device.own_memory().is_none();
        let shared = || devices.iter().position(on_host).filter(|_| on_host(&options.device));
        let place = place.or_else(shared);
        let model = |(name, footprint)| AuxiliaryModel {
            name,
            footprint,
            device: options.device.clone(),
            place,
        };
        Ok(AuxiliaryModels { models: models.into_iter().map(model).collect(), mapped })
    }
}
