//! What a bundle is to hold, and how it is to lie, as the flags of `bundle create` say it.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;

use crate::bundle::manifest::Role;
use crate::bundle::version::Version;
use crate::diagnosis::Failure;
use crate::hub::{Environment, HubOptions};
use crate::size::size;

/// The folders that --add fills.
const ADDED: [Role; 5] = [Role::Prompt, Role::Licence, Role::Sbom, Role::System, Role::Golden];

const EXPECTED: &str =
    "expected FOLDER=FILE, FOLDER one of prompts, licences, sbom, system and golden";

#[derive(Debug, Args)]
pub struct Request {
    /// Directory to make; it must not be there yet, or be empty
    pub directory: PathBuf,
    /// Models: cards, hub ids or directories; their files must be on this machine
    #[arg(long = "model", value_name = "MODEL", num_args = 1..)]
    pub models: Vec<String>,
    /// Recipes: names or files
    #[arg(long = "recipe", value_name = "NAME", num_args = 1..)]
    pub recipes: Vec<String>,
    /// Questions and notes: files, or directories of them, such as `data fetch` makes
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Built corpora, of sources whose licences allow redistribution
    #[arg(long = "corpus", value_name = "DIR", num_args = 1..)]
    pub corpora: Vec<PathBuf>,
    /// Directory of the models behind BERTScore and BLEURT, as for --scorers of `run`
    #[arg(long, value_name = "DIR")]
    pub scorers: Option<PathBuf>,
    /// Directory of an encoder or reranker
    #[arg(long = "encoder", value_name = "DIR", num_args = 1..)]
    pub encoders: Vec<PathBuf>,
    /// Programs; the first goes in as bin/wardround, and is asked how it was built [default: this one]
    #[arg(long = "binary", value_name = "FILE", num_args = 1..)]
    pub binaries: Vec<PathBuf>,
    /// Add a file to one of the folders prompts, licences, sbom, system and golden
    #[arg(long = "add", value_name = "FOLDER=FILE", value_parser = added)]
    pub added: Vec<Added>,
    /// The text of a component's licence, as its owner publishes it; needed for gated models
    #[arg(long = "licence", value_name = "CARD=FILE", value_parser = named)]
    pub licences: Vec<(String, PathBuf)>,
    /// The text that says what a component may be used for; needed for gated models whose licence refers to one
    #[arg(long = "policy", value_name = "CARD=FILE", value_parser = named)]
    pub policies: Vec<(String, PathBuf)>,
    /// Include the source of a corpus, or the dataset, of this name although its licence does not allow redistribution: you have permission
    #[arg(long = "allow", value_name = "LABEL", num_args = 1..)]
    pub allowed: Vec<String>,
    /// Who accepted the licences of gated models
    #[arg(long, value_name = "NAME")]
    pub accepted_by: Option<String>,
    /// Accept files without a known checksum: data of your own, models without a card
    #[arg(long)]
    pub unverified: bool,
    /// Leave out files that recipients already have: the MANIFEST.json of the version installed there
    #[arg(long, value_name = "MANIFEST")]
    pub since: Option<PathBuf>,
    /// Run the models here and include their answers as golden files, which `selftest` compares with
    #[arg(long)]
    pub golden: bool,
    /// Oldest version of Linux that the program runs on; `bundle install` refuses older ones
    #[arg(long, value_name = "VERSION", value_parser = number)]
    pub kernel: Option<String>,
    /// Oldest version of NVIDIA's driver that its GPU kernels run on; `bundle install` warns of an older one
    #[arg(long, value_name = "VERSION", value_parser = number)]
    pub driver: Option<String>,
    /// Largest file that the medium can hold, such as 4000M; larger files are split, and joined by `bundle install`
    #[arg(long = "split", value_name = "SIZE", value_parser = size_above_zero)]
    pub split_bytes: Option<u64>,
    /// The bundle's name [default: that of the directory]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The bundle's version: numbers between dots, higher each time
    #[arg(long = "release", value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub version: Version,
    /// What all times in the bundle are, to the second.
    #[arg(skip = SystemTime::UNIX_EPOCH)]
    pub time: SystemTime,
    /// Where models are looked for; `None`: where the environment says.
    #[arg(skip)]
    pub hub: Option<HubOptions>,
}

/// A file for one of the folders that nothing else fills.
#[derive(Clone, Debug)]
pub struct Added {
    pub role: Role,
    pub path: PathBuf,
}

impl Request {
    /// The bundle's name.
    ///
    /// # Errors
    /// A directory that cannot be made absolute.
    pub fn name(&self) -> Result<String, Failure> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let directory = std::path::absolute(&self.directory)?;
        let name = directory.file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// Only what is here is bundled.
    ///
    /// # Errors
    /// An environment that cannot be read.
    pub(super) fn hub(&self) -> Result<HubOptions, Failure> {
        match &self.hub {
            Some(hub) => Ok(hub.local()),
            None => Ok(HubOptions::new(Environment::capture()?).local()),
        }
    }

    /// # Errors
    /// A component with two texts.
    pub(super) fn refuse_two_texts(&self) -> Result<(), Failure> {
        for (flag, given) in [("--licence", &self.licences), ("--policy", &self.policies)] {
            for (place, (name, _)) in given.iter().enumerate() {
                if given[..place].iter().any(|(other, _)| other == name) {
                    let message = format!("{flag} {name} was given twice");
                    return Err(Failure::usage(message, "give one text of each"));
                }
            }
        }
        Ok(())
    }
}

fn added(text: &str) -> Result<Added, String> {
    let expected = || EXPECTED.to_owned();
    let (folder, path) = text.split_once('=').ok_or_else(expected)?;
    let role = Role::in_folder(folder).filter(|role| ADDED.contains(role)).ok_or_else(expected)?;
    Ok(Added { role, path: path.into() })
}

/// A version of a kernel or a driver.
fn number(text: &str) -> Result<String, String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split('.').all(is_number) {
        true => Ok(text.to_owned()),
        false => Err("expected numbers between dots, as in 5.13".to_owned()),
    }
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected CARD=FILE")?;
    Ok((name.to_owned(), path.into()))
}

fn size_above_zero(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("expected a size above 0".to_owned()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_something_else_fills_take_no_files() {
        assert_eq!(added("system/x").unwrap_err(), EXPECTED);
        assert!(added("system=a.service").is_ok() && added("golden=a.jsonl").is_ok());
        for wrong in ["bin=x", "models=x", "data=x", "x=y"] {
            assert!(added(wrong).is_err(), "{wrong}");
        }
    }
}
