//! `recipe.toml` in a recipe's folder: everything that it was started with, enough to resume it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::{Recipe, malformed};
use crate::diagnosis::Failure;
use crate::experiment::compare::{as_json, differences};
use crate::experiment::exemplars::ExemplarSpec;
use crate::experiment::hardware::Hardware;
use crate::experiment::spec::Shard;
use crate::experiment::whole_file;
use crate::outside;
use crate::panel::SamplingChoice;
use crate::record::Schema;
use crate::retrieval::CorpusSpec;

/// The file's name in the recipe's folder.
pub const FILE: &str = "recipe.toml";

/// A recipe with what was overridden.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeManifest {
    pub schema: Schema,
    /// As `recipe` was given it.
    pub name: String,
    pub seed: u64,
    /// Items of each dataset at most, from the beginning of its list.
    pub limit: Option<usize>,
    /// Of each dataset's items, the part that runs.
    pub shard: Option<Shard>,
    /// Absolute.
    pub data_dir: String,
    /// The file that runs in place of the recipe's own, absolute or built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub prompts: Option<String>,
    /// Settings that were changed wherever a system has them.
    #[serde(default)]
    pub settings: toml::Table,
    /// Agents that have another model wherever a method has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slots: BTreeMap<String, String>,
    /// How every agent samples, over what the recipe says.
    #[serde(default)]
    pub sampling: SamplingChoice,
    /// Agents that sample in a way of their own wherever a method has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slot_sampling: BTreeMap<String, SamplingChoice>,
    /// What cells that search are given.
    pub corpus: Option<CorpusSpec>,
    /// What cells that show exemplars are given.
    #[serde(default, skip_serializing_if = "ExemplarSpec::is_none")]
    pub exemplars: ExemplarSpec,
    /// What of the machine changes an answer.
    #[serde(default, skip_serializing_if = "Hardware::is_plain")]
    pub machine: Hardware,
    pub recipe: Recipe,
}

impl RecipeManifest {
    /// The files of keywords that its datasets name, each once, whether they are there or not.
    pub fn keyword_files(&self) -> Vec<PathBuf> {
        let named = self.recipe.dataset.iter().filter_map(|one| one.keywords.as_ref());
        named.map(|file| Path::new(&self.data_dir).join(file)).sorted().dedup().collect()
    }

    /// What the folder `out` was begun with; `None` where it is no recipe's.
    ///
    /// # Errors
    /// A file that cannot be read as one, or whose names would lead out of the folder.
    pub fn read(out: &Path) -> Result<Option<RecipeManifest>, Failure> {
        let path = out.join(FILE);
        // A path that is not a folder is reported by whoever opens a run there.
        if !path.is_file() {
            return Ok(None);
        }
        let text = outside::text(&path)?;
        let told = |problem: &str| malformed(path.display(), problem);
        let mut begun: toml::Table = outside::toml(&text).map_err(|error| told(&error))?;
        // Earlier versions ran variants beside the recipe, each in a folder of its own, drew sweeps apart, set
        // samples against a debate's price, and left malformed rows out.
        begun.remove("variants");
        begun.remove("skip_bad_rows");
        if let Some(toml::Value::Table(recipe)) = begun.get_mut("recipe") {
            recipe.remove("variant");
            if let Some(toml::Value::Array(analyses)) = recipe.get_mut("analyses") {
                let gone = [Some("sweep"), Some("equal-budget")];
                analyses.retain(|analysis| !gone.contains(&analysis.as_str()));
            }
        }
        let begun = RecipeManifest::deserialize(begun).map_err(|error| told(error.message()))?;
        // The rest may be as no file of a recipe is: flags have changed it.
        let names = begun.recipe.check_names();
        names.map_err(|problem| malformed(path.display(), problem))?;
        Ok(Some(begun))
    }

    /// Writes the manifest into the new folder `out`; one that holds an equal manifest is taken as it is.
    ///
    /// # Errors
    /// A folder that holds anything else.
    pub fn begin(&self, out: &Path) -> Result<(), Failure> {
        if let Some(found) = RecipeManifest::read(out)? {
            return match found == *self {
                true => Ok(()),
                false => {
                    // The folder's own value first.
                    let value = |manifest| as_json(manifest).unwrap_or_default();
                    let found = differences(&value(&found), &value(self));
                    let difference = found.first().map_or(String::new(), ToString::to_string);
                    let path = out.display();
                    Err(Failure::usage(
                        format!("{path} holds another run of recipes: {difference}"),
                        "give another --out, or the flags that it was begun with",
                    ))
                }
            };
        }
        if fs_err::exists(out)? && fs_err::read_dir(out)?.next().is_some() {
            return Err(Failure::usage(
                format!("{} is not a folder of recipe {}", out.display(), self.name),
                "give --out a folder that does not exist yet, or an empty one",
            ));
        }
        whole_file::create_private_directory(out)?;
        let text = toml::to_string_pretty(self).map_err(|error| malformed(&self.name, error))?;
        Ok(whole_file::write_private(&out.join(FILE), text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells lie in folders that are called by them.
    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        let out = tempfile::tempdir().unwrap();
        let manifest = RecipeManifest::plain("table4");
        manifest.begin(out.path()).unwrap();
        assert_eq!(RecipeManifest::read(out.path()).unwrap(), Some(manifest));
        let path = out.path().join(FILE);
        let good = fs_err::read_to_string(&path).unwrap();
        for name in ["medqa", "no-debate"] {
            let own = format!("name = \"{name}\"");
            assert!(good.contains(&own), "{good}");
            let bad = good.replacen(&own, "name = \"../../elsewhere\"", 1);
            fs_err::write(&path, bad).unwrap();
            let error = RecipeManifest::read(out.path()).unwrap_err().to_string();
            assert!(error.contains(FILE) && error.contains("names are lower-case"), "{error}");
        }
    }
}
