//! What a recipe's file contradicts itself in, or lacks: told with the key and a hint.

use super::built_in::ids;
use super::file::Recipe;
use crate::diagnosis::Failure;
use crate::experiment::spec::MOST_RUNS;
use crate::outside;
use crate::panel::SamplingChoice;

impl Recipe {
    /// Whether datasets and methods have names that folders may be called by, each once.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check_names(&self) -> Result<(), Failure> {
        let datasets: Vec<&str> = self.dataset.iter().map(|one| one.name.as_str()).collect();
        let methods: Vec<&str> = self.method.iter().map(|one| one.name.as_str()).collect();
        for (what, names) in [("dataset", &datasets), ("method", &methods)] {
            for (index, name) in names.iter().enumerate() {
                let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                if name.is_empty() || !name.chars().all(is_plain) {
                    let problem =
                        format!("{what} {name}: names are lower-case letters, digits and -");
                    let hint = "tables show its `label`, which may be anything";
                    return Err(Failure::usage(problem, hint));
                }
                if names[..index].contains(name) {
                    let problem = format!("two of [[{what}]] are named {name}");
                    return Err(Failure::usage(problem, "name one of them otherwise"));
                }
            }
        }
        // A recipe may be somebody else's, and what it names may go to an endpoint.
        let below = |key: &str, file: &str| match outside::is_below(file) {
            true => Ok(()),
            false => {
                let hint = "give --data-dir the folder, and here the path from there";
                Err(Failure::usage(format!("{key}: {file} is not below --data-dir"), hint))
            }
        };
        for dataset in &self.dataset {
            let keywords = dataset.keywords.iter().map(|file| ("keywords", file));
            for (key, file) in keywords.chain([("file", &dataset.file)]) {
                below(key, file)
                    .map_err(|error| error.about(&format!("dataset {}", dataset.name)))?;
            }
        }
        self.exemplars.iter().try_for_each(|one| below("exemplars", &one.file))?;
        let problem = match self.runs {
            0 => "runs: it may not be 0".to_owned(),
            runs if runs > MOST_RUNS => format!("runs: {runs}; {MOST_RUNS} at most are taken"),
            _ => return Ok(()),
        };
        Err(Failure::usage(problem, "1 is one run over the items, 3 give a standard deviation"))
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        self.check_names()?;
        let count = self.panel.len();
        if !self.panel_sampling.is_empty() && self.panel_sampling.len() != count {
            let problem = "panel_sampling: it has an entry for each of `panel`, or none";
            let hint = format!("`panel` has {count}; {{}} is a model's own sampling");
            return Err(Failure::usage(problem, &hint));
        }
        check_sampling("sampling", &self.sampling)?;
        self.panel_sampling.iter().try_for_each(|one| check_sampling("panel_sampling", one))?;
        for dataset in &self.dataset {
            if let Some(list) = dataset.ids.as_deref().filter(|list| ids(list).is_none()) {
                let hint = "leave it out: all items run, and --limit N takes the first N";
                let problem = format!("dataset {}: ids: no list of ids {list}", dataset.name);
                return Err(Failure::usage(problem, hint));
            }
        }
        self.method.iter().try_for_each(|method| {
            let checked = check_sampling("sampling", &method.sampling);
            checked.map_err(|error| error.about(&format!("method {}", method.name)))
        })
    }
}

fn check_sampling(key: &str, sampling: &SamplingChoice) -> Result<(), Failure> {
    let told = |problem| Failure::usage(format!("{key}: {problem}"), "docs/settings.md says more");
    sampling.check().map_err(told)
}
