//! Why a recipe cannot be read, or run.

use std::path::PathBuf;

use itertools::Itertools;
use thiserror::Error;

use crate::fault::faults;

faults! {
    #[derive(Debug, Error)]
    pub enum RecipeError {
        #[error("there is no recipe {name}")]
        Unknown { name: String } => Usage,
            format!(
                "the recipes are {}, of whole papers {}; or give a file",
                super::built_in::names().join(", "),
                super::built_in::papers().join(", ")
            );
        #[error("{path}: {problem}")]
        Malformed { path: String, problem: String } => Usage;
        #[error("{path} holds another run of recipes: {difference}")]
        Other { path: PathBuf, difference: String } => Usage,
            "give another --out, or the flags that it was begun with";
        #[error("{path} is not a folder of recipe {name}")]
        NoFolder { path: PathBuf, name: String } => Usage,
            "give --out a folder that does not exist yet, or an empty one";
        #[error("{path}: no cell of recipe {name} has finished, so there are no results yet")]
        Unfinished { path: PathBuf, name: String } => Usage,
            format!("run what is missing: wardround resume {}", path.display());
        #[error("the recipe has no setting {key} to override")]
        NoSetting { key: String } => Usage;
        #[error("no method of the recipe takes --{flag}")]
        Unused { flag: &'static str } => Usage, format!("leave --{flag} out");
        #[error("the recipe's methods differ in {key}: overridden, their labels would be wrong")]
        Varied { key: String } => Usage,
            "leave it out, or change it in a copy of the recipe's file, which `recipe FILE` runs";
        #[error("method {method} searches corpus {number} of those given, and {given} were")]
        NoCorpus { method: String, number: usize, given: usize } => Usage,
            "name the corpora in the recipe's order: --corpus DIR,DIR,…";
    }
}

impl RecipeError {
    pub(crate) fn malformed(path: impl ToString, problem: impl ToString) -> RecipeError {
        RecipeError::Malformed { path: path.to_string(), problem: problem.to_string() }
    }
}
