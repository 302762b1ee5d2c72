//! Why a recipe could not be read, or its results not be computed.

use std::path::PathBuf;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis, Failure};
use crate::experiment::error::RunError;
use crate::experiment::merge::MergeError;
use crate::systems::settings::SettingsError;

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
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Run(#[from] RunError),
    /// The cells have run, and what they say could not be computed.
    #[error("{0}")]
    Analysis(Failure),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Diagnosis for RecipeError {
    fn blame(&self) -> Blame {
        match self {
            RecipeError::Settings(error) => error.blame(),
            RecipeError::Merge(error) => error.blame(),
            RecipeError::Run(error) => error.blame(),
            RecipeError::Analysis(error) => error.blame(),
            RecipeError::Io(error) => error.blame(),
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RecipeError::Unknown { .. } => Some(format!(
                "the recipes are {}; or give a file",
                super::file::names().collect::<Vec<_>>().join(", ")
            )),
            RecipeError::Other { .. } => {
                Some("give another --out, or the flags that it was begun with".to_owned())
            }
            RecipeError::NoFolder { .. } => {
                Some("give --out a folder that does not exist yet, or an empty one".to_owned())
            }
            RecipeError::NotBegun { .. } => {
                Some("merge folders of one recipe, or run directories, not both".to_owned())
            }
            RecipeError::Unfinished { path, .. } => {
                Some(format!("run what is missing: wardround resume {}", path.display()))
            }
            RecipeError::Settings(error) => error.hint(),
            RecipeError::Merge(error) => error.hint(),
            RecipeError::Run(error) => error.hint(),
            RecipeError::Analysis(error) => error.hint(),
            RecipeError::Io(error) => error.hint(),
            _ => None,
        }
    }
}
