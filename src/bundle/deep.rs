//! What sums cannot say: that the files of a bundle are what they are called. Headers of weights, tokenizers, chat templates, and models
//! against the cards of this program, and the SBOMs against what programs say that they are made of.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::crate_list::{self, Compared};
use super::files;
use super::manifest::{Component, ComponentKind, FileEntry, Manifest, Role};
use crate::chat::ChatTemplate;
use crate::hub::{Card, Kind};
use crate::model::Config;
use crate::ops::checkpoint::Checkpoint;
use crate::tokenizer::{Library, Tokenizer};

/// What the program itself writes of models, beside the lists of crates that `tools/sbom.sh` writes.
const MODELS_SBOM: &str = "sbom/models.cdx.json";

/// What a closer look came to.
#[derive(Debug, Default)]
pub struct Deep {
    pub problems: Vec<String>,
    /// What could not be looked at.
    pub notes: Vec<String>,
    pub looked_into: usize,
    /// Files in parts, or from the version before.
    pub not_here: usize,
}

/// Looks into every file of a bundle that this program can read, whole ones alone.
pub fn check(directory: &Path, manifest: &Manifest) -> Deep {
    let is_here = |file: &&FileEntry| file.path.below(directory).is_file();
    let (here, elsewhere): (Vec<&FileEntry>, Vec<&FileEntry>) =
        manifest.files.iter().partition(is_here);
    let mut deep = Deep { looked_into: here.len(), not_here: elsewhere.len(), ..Deep::default() };
    deep.problems = here.par_iter().filter_map(|file| look_into(directory, file)).collect();
    let with_cards =
        manifest.components.iter().filter(|component| component.kind != ComponentKind::Data);
    for component in with_cards {
        let card = Card::find(&component.name);
        deep.problems.extend(card.iter().flat_map(|card| differences(component, card, manifest)));
        // A reader of text may be among the models too.
        let is_decoder = component.kind == ComponentKind::Model
            && card.is_none_or(|card| card.kind == Kind::Decoder);
        let folder = directory.join("models").join(&component.name);
        let is_whole =
            folder.join("tokenizer.json").is_file() && folder.join("config.json").is_file();
        if is_decoder && is_whole {
            let problem = decoder_problem(&folder);
            let told = problem.map(|why| format!("unsound  models/{}: {why}", component.name));
            deep.problems.extend(told);
        }
    }
    compare_programs(directory, &here, &mut deep);
    deep.problems.sort();
    deep
}

/// What is wrong with one file by its form.
fn look_into(directory: &Path, file: &FileEntry) -> Option<String> {
    let path = file.path.below(directory);
    let name = file.path.as_str();
    let problem = match name.rsplit(['.', '/']).next() {
        // A header that is none, or tensors that do not fill the file.
        Some("safetensors") => told(Checkpoint::open(&[path])),
        // A decoder's has more to be: see `decoder_problem`.
        Some("json") if name.ends_with("/tokenizer.json") => Library::read(&path, |_| Ok(())).err(),
        Some("json") => json(&path),
        _ => None,
    };
    problem.map(|why| format!("unsound  {name}: {why}"))
}

/// What went wrong, in words.
fn told<T, E: Display>(result: Result<T, E>) -> Option<String> {
    result.err().map(|error| error.to_string())
}

fn json(path: &Path) -> Option<String> {
    let read = || -> Result<(), String> {
        let file = files::open(path).map_err(|error| error.to_string())?;
        let value: Result<serde::de::IgnoredAny, _> =
            serde_json::from_reader(std::io::BufReader::new(file));
        value.map(drop).map_err(|error| error.to_string())
    };
    read().err()
}

/// Where a component and the card of its name differ.
fn differences(component: &Component, card: &Card, manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    let differs = |what: &str, found: &str, expected: &str| {
        format!("unsound  {}: {what} is {found}, its card says {expected}", component.name)
    };
    let repository = component.repository.as_deref().unwrap_or("not stated");
    if repository != card.repository {
        problems.push(differs("the repository", repository, &card.repository));
    }
    if component.gated != card.gated {
        let word = |gated: bool| if gated { "gated" } else { "open" };
        problems.push(differs("it", word(component.gated), word(card.gated)));
    }
    if component.revision.as_ref() != Some(&card.revision) {
        // Another commit has other sums: the card says nothing of it.
        return problems;
    }
    for file in &card.files {
        let path = format!("{}/{}/{}", component.kind.folder(), component.name, file.name);
        let (Some(expected), Some(found)) = (&file.sha256, manifest.file(&path)) else { continue };
        if found.sha256 != *expected {
            problems.push(differs(&format!("the sum of {}", file.name), &found.sha256, expected));
        }
    }
    problems
}

/// What keeps a folder from being a decoder that runs here.
fn decoder_problem(folder: &Path) -> Option<String> {
    let config = told(Config::read(&folder.join("config.json")));
    config.or_else(|| match Tokenizer::load(&folder.join("tokenizer.json")) {
        Ok(tokenizer) => told(ChatTemplate::load(folder).and_then(|chat| chat.try_out(&tokenizer))),
        Err(error) => Some(error.to_string()),
    })
}

/// Holds what each program says that it is made of against the SBOMs of the bundle.
fn compare_programs(directory: &Path, here: &[&FileEntry], deep: &mut Deep) {
    let of_role = |role: Role| here.iter().filter(move |file| file.role == role);
    let is_of_program = |path: &str| path.ends_with(".cdx.json") && path != MODELS_SBOM;
    let sboms: Vec<PathBuf> = of_role(Role::Sbom)
        .filter(|file| is_of_program(file.path.as_str()))
        .map(|file| file.path.below(directory))
        .collect();
    for FileEntry { path, .. } in of_role(Role::Binary) {
        if sboms.is_empty() {
            deep.notes.push(format!("{path}: the bundle has no list of its crates"));
            continue;
        }
        match crate_list::compare(&path.below(directory), &sboms) {
            Compared::Same => {}
            Compared::Differs(why) => {
                deep.problems.push(format!("unsound  {path} and sbom/: {why}"));
            }
            Compared::NoList => deep.notes.push(format!(
                "{path} carries no list of its crates (cargo auditable), so sbom/ was not compared with it"
            )),
        }
    }
}
