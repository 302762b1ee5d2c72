//! The systems of `serve`, with their models and settings.

use std::path::PathBuf;

use clap::Args;
use itertools::Itertools;

use super::sources::NamedModel;
use crate::cli::exit::Failure;
use crate::data::{Format, ItemKind};
use crate::experiment::spec::Spec;
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
    pub fn specs(&self, named: &[NamedModel]) -> Result<Vec<Spec>, Failure> {
        PromptSet::open(self.prompts.as_deref())?;
        let served: Vec<&String> = named.iter().map(|model| &model.name).collect();
        let mut specs: Vec<Spec> = Vec::with_capacity(self.system.len());
        for text in &self.system {
            let (which, members) = split(text);
            let entry = Which::read(which)?.entry()?;
            let name = entry.name;
            let set = self.set.iter().filter_map(|pair| Some(of(pair, name)?.to_owned()));
            let set: Vec<String> = set.collect();
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
            spec.panel = match members {
                Some(members) => members.split(',').map(|one| one.trim().to_owned()).collect(),
                // One model can take all seats; of more than needed the first ones are used.
                None => {
                    served.iter().copied().take(spec.config.default_models()).cloned().collect()
                }
            };
            if let Some(other) = spec.slot_models()?.into_iter().find(|one| !served.contains(one)) {
                return Err(Failure::usage(
                    format!("{name} needs the model {other}, which is not served"),
                    &format!("the models here are {}", served.iter().join(", ")),
                ));
            }
            specs.push(spec);
        }
        let is_served =
            |pair: &str| specs.iter().any(|spec| of(pair, spec.config.entry.name).is_some());
        match self.set.iter().find(|pair| !is_served(pair)) {
            None => Ok(specs),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_models_is_refused() {
        let flags = SystemFlags { system: vec!["medmad".to_owned()], ..SystemFlags::default() };
        let refused = flags.specs(&[]).err().unwrap().to_string();
        assert_eq!(refused, "no model was given for sym");
    }
}
