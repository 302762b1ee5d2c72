//! The systems of `serve`, with their models and settings.

use std::path::PathBuf;

use clap::Args;

use super::sources::NamedModel;
use crate::cli::exit::Failure;
use crate::data::{Format, ItemKind};
use crate::experiment::hardware::Hardware;
use crate::experiment::spec::{Spec, cited};
use crate::hub::HubOptions;
use crate::prompts::PromptSet;
use crate::systems::file::EXTENSION;
use crate::systems::{SystemConfig, Which};

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Systems")]
pub struct SystemFlags {
    /// Serve a system under its name, such as medmad, or that of a TOML file, with the models in their order or those after =; may be repeated
    #[arg(long, value_name = "SYSTEM[=A,B,C]")]
    pub system: Vec<String>,
    /// Change a setting of a system, such as medmad.t_max=2, as --set of `run` does; may be repeated
    #[arg(long, value_name = "SYSTEM.KEY=VALUE")]
    pub set: Vec<String>,
    /// A directory of prompts that override the built-in ones
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
}

impl SystemFlags {
    /// The spec of each system; its panel has the models' names in the API.
    pub fn specs(
        &self,
        named: &[NamedModel],
        hardware: &Hardware,
        hub: &HubOptions,
    ) -> Result<Vec<Spec>, Failure> {
        PromptSet::open(self.prompts.as_deref())?;
        let mut specs: Vec<Spec> = Vec::with_capacity(self.system.len());
        for text in &self.system {
            let (which, members) = split(text);
            let entry = Which::read(which)?.entry()?;
            let name = entry.name;
            let mut set = self.pairs(name);
            cited(entry, &mut set)?;
            let format = match entry.takes {
                ItemKind::Questions => Format::Mcq,
                ItemKind::Notes => Format::Notes,
            };
            let plain = Spec::new(SystemConfig::default(), "", format)?;
            let spec = Spec { set, prompts: self.prompts.clone(), panel: Vec::new(), ..plain };
            let mut spec = spec.of(entry, "", format)?;
            if entry.exemplars || spec.config.search().is_some() {
                return Err(Failure::usage(
                    format!(
                        "{name} searches a corpus or shows exemplars, and a server has neither"
                    ),
                    "ask it by `wardround check` or `wardround run`",
                ));
            }
            spec.panel = panel(&spec.config, members, named)?;
            spec.hardware = hardware.clone();
            spec.hub = hub.clone();
            specs.push(spec);
        }
        self.refuse_other_settings(&specs)?;
        Ok(specs)
    }

    /// The settings that are given for a system, without its name.
    fn pairs(&self, system: &str) -> Vec<String> {
        self.set.iter().filter_map(|pair| Some(of(pair, system)?.to_owned())).collect()
    }

    /// Refuses settings of systems that are not served.
    fn refuse_other_settings(&self, specs: &[Spec]) -> Result<(), Failure> {
        let is_served =
            |pair: &&String| specs.iter().any(|spec| of(pair, spec.config.entry.name).is_some());
        match self.set.iter().find(|pair| !is_served(pair)) {
            None => Ok(()),
            Some(pair) => Err(Failure::usage(
                format!("--set {pair} names no system that is served"),
                "write --set SYSTEM.KEY=VALUE, and --system SYSTEM",
            )),
        }
    }
}

/// A system, and the models that stand after it. The path of a file may hold a `=`.
fn split(text: &str) -> (&str, Option<&str>) {
    let file = text.find(&format!("{EXTENSION}=")).map(|at| at + EXTENSION.len());
    let name = || text.find('=').filter(|_| !text.ends_with(EXTENSION));
    match file.or_else(name) {
        Some(end) => (&text[..end], Some(&text[end + 1..])),
        None => (text, None),
    }
}

/// What a pair says of a system, without its name.
fn of<'a>(pair: &'a str, system: &str) -> Option<&'a str> {
    pair.strip_prefix(system)?.strip_prefix('.')
}

/// The names of a system's models, in panel order.
fn panel(
    config: &SystemConfig,
    members: Option<&str>,
    named: &[NamedModel],
) -> Result<Vec<String>, Failure> {
    let served: Vec<&str> = named.iter().map(|model| model.name.as_str()).collect();
    let name = config.entry.name;
    let wanted = config.models();
    let members: Vec<String> = match members {
        Some(members) => members.split(',').map(|member| member.trim().to_owned()).collect(),
        // One model can take all seats; of more than needed the first ones are used.
        None => served.iter().take(config.default_models()).map(ToString::to_string).collect(),
    };
    if let Some(other) = members.iter().find(|member| !served.contains(&member.as_str())) {
        return Err(Failure::usage(
            format!("{name} needs the model {other}, which is not served"),
            &format!("the models here are {}", served.join(", ")),
        ));
    }
    if members.len() != 1 && members.len() != wanted {
        // A damaged audit trail may name no models.
        let example = served.first().unwrap_or(&"NAME");
        return Err(Failure::usage(
            format!("{name} takes {wanted} models, and has {}", members.len()),
            &format!("serve {wanted} models, or name one for all: --system {name}={example}"),
        ));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_models_is_refused() {
        let flags = SystemFlags { system: vec!["medmad".to_owned()], ..SystemFlags::default() };
        let hub = HubOptions::capture().unwrap();
        let refused = flags.specs(&[], &Hardware::default(), &hub).err().unwrap().to_string();
        assert_eq!(refused, "medmad takes 3 models, and has 0");
    }
}
