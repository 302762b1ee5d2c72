//! What a recipe's file contradicts itself in, or lacks: told with the line and a hint.

use super::built_in::ids;
use super::file::{PAGE, Recipe};
use crate::diagnosis::Failure;
use crate::experiment::spec::MOST_RUNS;
use crate::outside;
use crate::panel::SamplingChoice;
use crate::systems::file::EXTENSION;
use crate::systems::file::fault::Fault;
use crate::systems::{SystemConfig, Which};

impl Recipe {
    /// Whether datasets and methods have names that folders may be called by, each once.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check_names(&self) -> Result<(), Fault> {
        let datasets: Vec<&str> = self.dataset.iter().map(|one| one.name.as_str()).collect();
        let methods: Vec<&str> = self.method.iter().map(|one| one.name.as_str()).collect();
        for (what, names) in [("dataset", &datasets), ("method", &methods)] {
            if names.is_empty() {
                let hint = "`wardround recipe show new-questions` prints a recipe that has one";
                return Err(Fault::new(what, format!("there is no [[{what}]]"), hint));
            }
            for (index, name) in names.iter().enumerate() {
                let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                if name.is_empty() || !name.chars().all(is_plain) {
                    let problem = "names are lower-case letters, digits and -";
                    let hint = "tables show its `label`, which may be anything";
                    return Err(Fault::new("name", problem, hint).within(what, name));
                }
                if names[..index].contains(name) {
                    let problem = format!("two of [[{what}]] are named {name}");
                    return Err(Fault::new("name", problem, "name one of them otherwise")
                        .within(what, name));
                }
            }
        }
        // A recipe may be somebody else's, and what it names may go to an endpoint.
        let below = |key: &str, file: &str| match outside::is_below(file) {
            true => Ok(()),
            false => {
                let hint = "give --data-dir the folder, and here the path from there";
                Err(Fault::new(key, format!("{file} is not below --data-dir"), hint))
            }
        };
        for dataset in &self.dataset {
            let keywords = dataset.keywords.iter().map(|file| ("keywords", file));
            for (key, file) in keywords.chain([("file", &dataset.file)]) {
                below(key, file).map_err(|fault| fault.within("dataset", &dataset.name))?;
            }
        }
        self.exemplars.iter().try_for_each(|one| below("exemplars", &one.file))?;
        if self.runs > MOST_RUNS {
            let problem = format!("{} runs; {MOST_RUNS} at most are taken", self.runs);
            return Err(Fault::new("runs", problem, "3 give a standard deviation"));
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        self.check_names()?;
        if self.runs == 0 {
            return Err(Fault::new("runs", "it may not be 0", "1 is one run over the items"));
        }
        if self.panel.is_empty() {
            let hint = "`wardround models ls` lists the models";
            return Err(Fault::new("panel", "it may not be empty", hint));
        }
        let count = self.panel.len();
        if !self.panel_sampling.is_empty() && self.panel_sampling.len() != count {
            let problem = "it has an entry for each of `panel`, or none";
            let hint = format!("`panel` has {count}; {{}} is a model's own sampling");
            return Err(Fault::new("panel_sampling", problem, hint));
        }
        check_sampling("sampling", &self.sampling)?;
        self.panel_sampling.iter().try_for_each(|one| check_sampling("panel_sampling", one))?;
        for dataset in &self.dataset {
            if let Some(list) = dataset.ids.as_deref().filter(|list| ids(list).is_none()) {
                let hint = "leave it out: all items run, and --limit N takes the first N";
                let fault = Fault::new("ids", format!("no list of ids {list}"), hint);
                return Err(fault.within("dataset", &dataset.name));
            }
        }
        self.method.iter().try_for_each(|method| {
            let checked = check_sampling("sampling", &method.sampling);
            checked.map_err(|fault| fault.within("method", &method.name))
        })
    }

    /// Whether there are the methods' systems, with such settings and for so many models; of files beside once they are read.
    pub(super) fn check_systems(&self) -> Result<(), Fault> {
        for method in &self.method {
            let fault = |key, error: Failure| {
                Fault::under(key, &error, PAGE).within("method", &method.name)
            };
            if matches!(&method.system, Which::Named(name) if name.ends_with(EXTENSION)) {
                continue;
            }
            let entry = method.system.entry().map_err(|error| fault("system", error))?;
            let config = SystemConfig::with(entry, &method.settings);
            let config = config.map_err(|error| fault("settings", error.into()))?;
            let taken = self.panel.len().min(config.default_models());
            let given = method.panel.as_ref().map_or(taken, Vec::len);
            if given > 1 && given != config.models() {
                let (name, models) = (entry.name, config.models());
                let hint = format!("give `panel` {models} models, or one for all");
                let problem = format!("a panel of {given} models, and {name} takes {models}");
                let fault = Fault::new("panel", problem, hint);
                return Err(match method.panel {
                    Some(_) => fault.within("method", &method.name),
                    None => fault,
                });
            }
        }
        Ok(())
    }
}

fn check_sampling(key: &str, sampling: &SamplingChoice) -> Result<(), Fault> {
    let problem = sampling.check();
    problem.map_err(|problem| Fault::new(key, problem, "docs/settings.md says more"))
}
