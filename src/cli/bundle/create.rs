//! `bundle create`: its flags, and the commands that it prints for signing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::bundle::SUMS;
use crate::bundle::create::{Added, Request, create};
use crate::bundle::manifest::Role;
use crate::bundle::version::Version;
use crate::cli::exit::Failure;
use crate::cli::options::HubFlags;
use crate::cli::size::size;
use crate::cli::summary::count;
use crate::console;

/// The folders that --add fills.
const ADDED: [Role; 5] = [Role::Prompt, Role::Licence, Role::Sbom, Role::System, Role::Golden];

const EXPECTED: &str =
    "expected FOLDER=FILE, FOLDER one of prompts, licences, sbom, system and golden";

#[derive(Debug, Args)]
pub struct Create {
    /// Directory to make; it must not be there yet, or be empty
    directory: PathBuf,
    /// Models: cards, hub ids or directories; their files must be on this machine
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    model: Vec<String>,
    /// Recipes: names or files
    #[arg(long, value_name = "NAME", num_args = 1..)]
    recipe: Vec<String>,
    /// Questions and notes: files, or directories of them, such as `data fetch` makes
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
    /// Built corpora, of sources whose licences allow redistribution
    #[arg(long, value_name = "DIR", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// Directory of the models behind BERTScore and BLEURT, as for --scorers of `run`
    #[arg(long, value_name = "DIR")]
    scorers: Option<PathBuf>,
    /// Directory of an encoder or reranker
    #[arg(long, value_name = "DIR", num_args = 1..)]
    encoder: Vec<PathBuf>,
    /// Programs; the first goes in as bin/wardround, and is asked how it was built [default: this one]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    binary: Vec<PathBuf>,
    /// Add a file to one of the folders prompts, licences, sbom, system and golden
    #[arg(long, value_name = "FOLDER=FILE", value_parser = added)]
    add: Vec<Added>,
    /// The text of a component's licence, as its owner publishes it; needed for gated models
    #[arg(long, value_name = "CARD=FILE", value_parser = named)]
    licence: Vec<(String, PathBuf)>,
    /// The text that says what a component may be used for; needed for gated models whose licence refers to one
    #[arg(long, value_name = "CARD=FILE", value_parser = named)]
    policy: Vec<(String, PathBuf)>,
    /// Include the source of a corpus, or the dataset, of this name although its licence does not allow redistribution: you have permission
    #[arg(long, value_name = "LABEL", num_args = 1..)]
    allow: Vec<String>,
    /// Who accepted the licences of gated models
    #[arg(long, value_name = "NAME")]
    accepted_by: Option<String>,
    /// Accept files without a known checksum: data of your own, models without a card
    #[arg(long)]
    unverified: bool,
    /// Leave out files that recipients already have: the MANIFEST.json of the version installed there
    #[arg(long, value_name = "MANIFEST")]
    since: Option<PathBuf>,
    /// Run the models here and include their answers as golden files, which `selftest` compares with
    #[arg(long)]
    golden: bool,
    /// Oldest version of Linux that the program runs on; `bundle install` refuses older ones
    #[arg(long, value_name = "VERSION", value_parser = number)]
    kernel: Option<String>,
    /// Oldest version of NVIDIA's driver that its GPU kernels run on; `bundle install` warns of an older one
    #[arg(long, value_name = "VERSION", value_parser = number)]
    driver: Option<String>,
    /// Largest file that the medium can hold, such as 4000M; larger files are split, and joined by `bundle install`
    #[arg(long, value_name = "SIZE", value_parser = size_above_zero)]
    split: Option<u64>,
    /// The bundle's name [default: that of the directory]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The bundle's version: numbers between dots, higher each time
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    release: Version,
    #[command(flatten)]
    hub: HubFlags,
}

impl Create {
    pub fn run(self) -> Result<(), Failure> {
        let directory = self.directory.clone();
        let created = create(&self.request()?)?;
        let manifest = &created.manifest;
        let files = count(manifest.files.len(), "file");
        console::note(format!(
            "{} {}: {files}, {:.1} MB",
            manifest.name,
            manifest.version,
            manifest.size_bytes() as f64 / 1e6
        ));
        for name in &created.unverified {
            console::note(format!(
                "note: {name} has files without a known checksum; the manifest says so"
            ));
        }
        for name in &created.by_leave {
            console::note(format!(
                "note: {name} goes in by --allow; its licence does not let copies be handed on"
            ));
        }
        for path in &created.lacking {
            console::note(format!(
                "note: the bundle has no {path}; tools/sbom.sh writes it, and --add {}=FILE takes it",
                path.split('/').next().unwrap_or_default()
            ));
        }
        for words in manifest.components.iter().filter_map(|component| component.shown.as_ref()) {
            console::note(words);
        }
        console::note(
            "It is not signed yet. Sign it where the keys are, with one of these or both; `bundle install` asks for the first:",
        );
        let sums = directory.join(SUMS);
        console::say(format!("minisign -S -s KEY -m {}", sums.display()))?;
        Ok(console::say(format!(
            "ssh-keygen -Y sign -f KEY -n wardround-bundle {}",
            sums.display()
        ))?)
    }

    fn request(self) -> Result<Request, Failure> {
        let own_name = std::path::absolute(&self.directory)?
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let binaries = match self.binary.is_empty() {
            true => vec![std::env::current_exe()?],
            false => self.binary,
        };
        Ok(Request {
            directory: self.directory,
            name: self.name.or(own_name).unwrap_or_default(),
            version: self.release,
            models: self.model,
            scorers: self.scorers,
            encoders: self.encoder,
            data: self.data,
            corpora: self.corpus,
            recipes: self.recipe,
            binaries,
            added: self.add,
            licences: once("--licence", self.licence)?,
            policies: once("--policy", self.policy)?,
            allowed: self.allow,
            accepted_by: self.accepted_by,
            unverified: self.unverified,
            since: self.since,
            golden: self.golden,
            kernel: self.kernel,
            driver: self.driver,
            split_bytes: self.split,
            time: time()?,
            hub: self.hub.options(true)?,
        })
    }
}

/// The time of SOURCE_DATE_EPOCH, with which a bundle can be reproduced byte for byte; without it the present.
fn time() -> Result<SystemTime, Failure> {
    const NAME: &str = "SOURCE_DATE_EPOCH";
    let seconds = match std::env::var(NAME) {
        Ok(value) => {
            // Times up to the end of the year 9999 can be formatted.
            let seconds = value.parse().ok().filter(|seconds| *seconds < 253_402_300_800);
            seconds.ok_or_else(|| {
                Failure::usage(
                    format!("{NAME} is `{value}`"),
                    "expected a number of seconds since 1970",
                )
            })?
        }
        Err(_) => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.map_or(0, |since| since.as_secs())
        }
    };
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn added(text: &str) -> Result<Added, String> {
    let expected = || EXPECTED.to_owned();
    let (folder, path) = text.split_once('=').ok_or_else(expected)?;
    let role = Role::in_folder(folder).filter(|role| ADDED.contains(role)).ok_or_else(expected)?;
    Ok(Added { role, path: path.into() })
}

/// The files by component; none may be given twice.
fn once(flag: &str, given: Vec<(String, PathBuf)>) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut texts = BTreeMap::new();
    for (name, path) in given {
        if texts.insert(name.clone(), path).is_some() {
            return Err(Failure::usage(
                format!("{flag} {name} was given twice"),
                "give one text of each",
            ));
        }
    }
    Ok(texts)
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
