//! Why a recipe cannot be read, run or merged.

use std::path::PathBuf;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};

#[derive(Debug, Error)]
pub enum RecipeError {
    #[error("there is no recipe {name}")]
    Unknown { name: String },
    #[error("{path}: {problem}")]
    Malformed { path: String, problem: String },
    #[error("{path} holds another run of recipes: {difference}")]
    Other { path: PathBuf, difference: String },
    #[error("{path} is not a folder of recipe {name}")]
    NoFolder { path: PathBuf, name: String },
    #[error("{path} is no folder of a recipe")]
    NotBegun { path: PathBuf },
    #[error("{path}: not every cell of recipe {name} has run, so there are no results yet")]
    Unfinished { path: PathBuf, name: String },
    #[error("the recipe has no setting {key} to override")]
    NoSetting { key: String },
    #[error("the recipe's methods differ in {key}: overridden, their labels would be wrong")]
    Varied { key: String },
    #[error("method {method} searches corpus {number} of those given, and {given} were")]
    NoCorpus { method: String, number: usize, given: usize },
    #[error("the recipe has no variant {name}")]
    NoVariant { name: String, known: Vec<String> },
}

impl RecipeError {
    pub(crate) fn malformed(path: impl ToString, problem: impl ToString) -> RecipeError {
        RecipeError::Malformed { path: path.to_string(), problem: problem.to_string() }
    }
}

impl Diagnosis for RecipeError {
    fn blame(&self) -> Blame {
        Blame::Usage
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            RecipeError::Unknown { .. } => {
                let names: Vec<&str> = super::file::names().collect();
                return Some(format!("the recipes are {}; or give a file", names.join(", ")));
            }
            RecipeError::Unfinished { path, .. } => {
                return Some(format!("run what is missing: wardround resume {}", path.display()));
            }
            RecipeError::NoVariant { known, .. } if !known.is_empty() => {
                return Some(format!("its variants are {}, or all", known.join(", ")));
            }
            RecipeError::Other { .. } => "give another --out, or the flags that it was begun with",
            RecipeError::NoFolder { .. } => {
                "give --out a folder that does not exist yet, or an empty one"
            }
            RecipeError::NotBegun { .. } => {
                "merge folders of one recipe, or run directories, not both"
            }
            RecipeError::NoCorpus { .. } => {
                "name the corpora in the recipe's order: --corpus DIR,DIR,…"
            }
            RecipeError::Varied { .. } => {
                "leave it out, or change it in a copy of the recipe's file, which `recipe FILE` runs"
            }
            RecipeError::NoVariant { .. } => "it has none",
            RecipeError::Malformed { .. } | RecipeError::NoSetting { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
