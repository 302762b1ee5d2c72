//! The systems of `serve`, with their models, settings and corpora.

use super::sources::NamedModel;
use crate::cli::exit::Failure;
use crate::cli::flags::{self, CITED, SetPairs, SystemFlags, by_default};
use crate::cli::sandboxed::Paths;
use crate::data::{Format, ItemKind};
use crate::experiment::hardware::Hardware;
use crate::experiment::spec::Spec;
use crate::hub::HubOptions;
use crate::systems::file::EXTENSION;
use crate::systems::{SystemConfig, Which};

impl SystemFlags {
    /// Allows reading the files of the systems.
    pub fn within(&self, paths: Paths) -> Paths {
        // What is missing is reported when it is opened.
        let reranker = flags::reranker(&self.corpus).ok().flatten();
        paths
            .read(&self.prompts.prompts)
            .corpora(&self.corpus.directories)
            .read(reranker)
            .read(self.exemplars.paths())
    }

    /// The spec of each system; its panel has the models' names in the API.
    pub fn specs(
        &self,
        named: &[NamedModel],
        hardware: &Hardware,
        hub: &HubOptions,
    ) -> Result<Vec<Spec>, Failure> {
        let corpus = flags::corpus(&self.corpus)?;
        let exemplars = self.exemplars.spec(None)?;
        let mut specs: Vec<Spec> = Vec::with_capacity(self.system.len());
        for text in &self.system {
            let (which, members) = split(text);
            let entry = Which::read(which)?.entry()?;
            let name = entry.name;
            let mut set = SetPairs::of(&self.pairs(name))?;
            by_default(entry, CITED, &mut set.settings)?;
            let config = SystemConfig::of(entry, &set.settings)?;
            let panel = panel(&config, members, named)?;
            let is_searching = config.search().is_some();
            if is_searching && corpus.is_none() {
                return Err(Failure::usage(
                    format!("{name} searches a corpus, and none was given"),
                    "give --corpus DIR, which `wardround corpus build` writes",
                ));
            }
            let format = match config.entry.takes {
                ItemKind::Questions => Format::Mcq,
                ItemKind::Notes => Format::Notes,
            };
            let shows = config.entry.exemplars;
            let spec = Spec {
                panel,
                slots: set.models,
                slot_sampling: set.sampling,
                prompts: self.prompts.prompts.clone(),
                corpus: corpus.clone().filter(|_| is_searching),
                exemplars: exemplars.clone().filter(|_| shows),
                hardware: hardware.clone(),
                hub: hub.clone(),
                ..Spec::new(config, "", format)?
            };
            spec.case_prompts()?;
            specs.push(spec);
        }
        if corpus.is_some() && specs.iter().all(|spec| spec.corpus.is_none()) {
            let hint = format!("leave --corpus out, or serve {}", SystemConfig::searching());
            return Err(Failure::usage("no system that is served searches a corpus", &hint));
        }
        if exemplars.is_some() && specs.iter().all(|spec| spec.exemplars.is_none()) {
            let hint = "leave --exemplars out, or serve a system of MEDIQA-CORR";
            return Err(Failure::usage("no system that is served shows exemplars", hint));
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
        let hub = HubOptions::new(crate::hub::Environment::capture().unwrap());
        let refused = flags.specs(&[], &Hardware::default(), &hub).err().unwrap().to_string();
        assert_eq!(refused, "medmad takes 3 models, and has 0");
    }
}
