//! Loads what `serve` serves: models with their names in the API, systems on these models, and encoders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use itertools::Itertools;

use super::systems::SystemFlags;
use crate::cli::sandboxed::Paths;
use crate::corpus::embed::encoder_options;
use crate::diagnosis::Failure;
use crate::encoder::{self, EncoderCard, EncoderOptions};
use crate::experiment::hardware::Hardware;
use crate::experiment::models::Models;
use crate::experiment::spec::Spec;
use crate::hub::{self, Card, HubOptions, Kind};
use crate::model::Footprint;
use crate::ops::Device;
use crate::panel::remote::Address;
use crate::serve::{Served, ServedEncoder, ServedModel, ServedSystem};
use crate::synth;

/// A model and its name in the API.
pub struct NamedModel {
    pub name: String,
    pub model: String,
}

impl NamedModel {
    fn parse(text: &str) -> Result<NamedModel, Failure> {
        // A directory may have a `=` in its name; a name has no slash.
        let folder = Path::new(text).file_name().filter(|_| Path::new(text).is_dir());
        let (name, model) = match (folder, text.split_once('=')) {
            (Some(folder), _) => (folder.to_string_lossy().into_owned(), text.to_owned()),
            (None, Some((name, model))) if !name.contains('/') => {
                (name.to_owned(), model.to_owned())
            }
            _ => (text.to_owned(), text.to_owned()),
        };
        if Address::is_meant_by(&model) {
            let hint = "point its clients at the endpoint itself";
            return Err(Failure::usage(
                format!("{model} is an endpoint, which is not served again"),
                hint,
            ));
        }
        if name.is_empty() || model.is_empty() {
            return Err(Failure::usage(
                format!("`{text}` lacks a name or a model"),
                "write NAME=MODEL",
            ));
        }
        Ok(NamedModel { name, model })
    }
}

/// The directory of an encoder, and its name in the API.
pub struct NamedFolder {
    name: String,
    directory: PathBuf,
}

impl NamedFolder {
    /// `None` for a language model. What a card names is fetched where it is not there.
    fn find(named: &NamedModel, hub: &HubOptions) -> Result<Option<NamedFolder>, Failure> {
        let path = Path::new(&named.model);
        let is_one = match path.is_dir() {
            true => EncoderCard::is_said(path, Card::of_directory(path)?.map(Card::known)),
            false => Card::find(&named.model).is_some_and(|card| card.kind == Kind::Encoder),
        };
        if !is_one {
            return Ok(None);
        }
        let directory = std::path::absolute(hub::folder(path, hub)?)?;
        Ok(Some(NamedFolder { name: named.name.clone(), directory }))
    }

    fn options(&self, device: &Device) -> Result<EncoderOptions, Failure> {
        encoder_options(&self.directory, device.clone())
    }

    /// What it takes beside the models, on the first of their devices.
    fn memory(&self, device: &Device) -> Result<(String, Footprint), Failure> {
        Ok((self.name.clone(), encoder::footprint(&self.options(device)?)?))
    }

    fn load(self, device: &Device) -> Result<ServedEncoder, Failure> {
        let is_synthetic = self.directory.join(synth::MARKER).is_file();
        let card = Card::of_directory(&self.directory)?;
        let notice = card.and_then(|card| card.licence.shown.as_deref());
        ServedEncoder::open(&self.name, &self.options(device)?, is_synthetic, notice)
    }
}

/// The models and systems to serve, and the options they are loaded with.
pub struct Sources {
    named: Vec<NamedModel>,
    encoders: Vec<NamedFolder>,
    specs: Vec<Spec>,
    hardware: Hardware,
    hub: HubOptions,
}

impl Sources {
    /// Checks the models and systems without loading them.
    pub fn check(
        models: &[String],
        systems: &SystemFlags,
        hardware: &Hardware,
        hub: HubOptions,
    ) -> Result<Sources, Failure> {
        let all = models.iter().map(|text| NamedModel::parse(text));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        let (mut encoders, mut named) = (Vec::new(), Vec::new());
        for model in all {
            match NamedFolder::find(&model, &hub)? {
                Some(encoder) => encoders.push(encoder),
                None => {
                    hub::check(&model.model, &hub)?;
                    named.push(model);
                }
            }
        }
        let hardware = Hardware { serves: true, ..hardware.clone() };
        let specs = systems.specs(&named)?;
        let models = named.iter().map(|model| &*model.name);
        let models = models.chain(encoders.iter().map(|encoder| &*encoder.name));
        let all = models.chain(specs.iter().map(|spec| spec.config.entry.name));
        if let Some(name) = all.duplicates().next() {
            return Err(Failure::usage(
                format!("two models or systems are named {name}"),
                "give a model another name: NAME=MODEL; a system is served once",
            ));
        }
        Ok(Sources { named, encoders, specs, hardware, hub })
    }

    /// Allows reading the models.
    pub fn within(&self, paths: Paths, hub: &HubOptions) -> Result<Paths, Failure> {
        let paths = paths.models(self.named.iter().map(|named| &named.model), hub)?;
        let encoders = self.encoders.iter().map(|encoder| &encoder.directory);
        Ok(encoders.fold(paths, |paths, folder| paths.read_model(folder)))
    }

    /// Reads and loads the models; two names of one model share its engine.
    pub fn load(self) -> Result<Served, Failure> {
        let Sources { named, encoders, specs, hardware, hub } = self;
        let names: Vec<String> = named.iter().map(|model| model.model.clone()).collect();
        let models = Models::describe(&names, &hardware, &hub, |devices| {
            let device = hardware.compute.on.of_encoders(devices)?;
            let own = encoders.iter().map(|encoder| encoder.memory(&device));
            own.collect()
        })?;
        let device = hardware.compute.on.of_encoders(&models.devices)?;
        let encoders = encoders.into_iter().map(|encoder| encoder.load(&device).map(Arc::new));
        let encoders = encoders.collect::<Result<_, _>>()?;
        let indices: Vec<Option<usize>> = names.iter().map(|name| models.index(name)).collect();
        let pages: Vec<usize> = models.memory.iter().map(|memory| memory.options.pages).collect();
        let backbones = models.start()?.backbones;
        let loaded = named.into_iter().zip(indices).filter_map(|(named, index)| {
            let backbone = backbones[index?].clone();
            Some(Arc::new(ServedModel::new(&named.name, backbone, pages[index?])))
        });
        let models: Vec<Arc<ServedModel>> = loaded.collect();
        let backbone = |name: &str| {
            let model = models.iter().find(|model| model.entry.id == name)?;
            Some(model.backbone.clone())
        };
        let systems = specs.iter().map(|spec| {
            let seated = spec.seat(backbone)?;
            let names = spec.slot_models()?.into_iter().cloned().collect();
            Ok(Arc::new(ServedSystem::new(seated, names, &models)))
        });
        let systems = systems.collect::<Result<_, Failure>>()?;
        Ok(Served { models, systems, encoders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_an_equals_sign_is_a_model_and_a_name_is_what_has_no_slash() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", folder.path().display());
        fs_err::create_dir_all(at("lora=2/tiny")).unwrap();
        let parse = |text: &str| {
            let named = NamedModel::parse(text).unwrap();
            (named.name, named.model)
        };
        assert_eq!(parse(&at("lora=2")), ("lora=2".to_owned(), at("lora=2")));
        assert_eq!(parse(&at("lora=2/tiny")), ("tiny".to_owned(), at("lora=2/tiny")));
        assert_eq!(parse(&format!("ward={}", at("lora=2"))), ("ward".to_owned(), at("lora=2")));
        // What is not there is said with its whole path.
        assert_eq!(parse("/no/lora=3").1, "/no/lora=3");
        assert_eq!(parse("ward=qwen3-4b"), ("ward".to_owned(), "qwen3-4b".to_owned()));
        assert_eq!(parse("org/name"), ("org/name".to_owned(), "org/name".to_owned()));
    }
}
