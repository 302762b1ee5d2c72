//! Making a bundle: what is asked for is found and summed, written beside its place, and put there by one rename. Nothing is signed here:
//! a signing key has no business near a program that parses models.

mod checkpoints;
mod contents;
mod corpora;
mod data;
mod describe;
mod golden;
mod licences;
mod page;
mod sbom;
mod system;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use self::contents::Contents;
use super::manifest::{MOST_BYTES, Manifest, Previous, Role, is_name};
use super::version::Version;
use super::{BundleError, MANIFEST, files};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::experiment::recipe::{Recipe, recipe_text};
use crate::hub::HubOptions;

/// What a bundle is to hold, and how it is to lie.
pub struct Request {
    /// Where it is to be; not there yet, or empty.
    pub directory: PathBuf,
    pub name: String,
    pub version: Version,
    /// Cards, hub ids or directories.
    pub models: Vec<String>,
    /// A folder of the models behind BERTScore and BLEURT, each in a folder of its own.
    pub scorers: Option<PathBuf>,
    /// The folder of an encoder or reranker.
    pub encoders: Vec<PathBuf>,
    /// Files, or folders of them.
    pub data: Vec<PathBuf>,
    /// Built corpora.
    pub corpora: Vec<PathBuf>,
    /// Names or files.
    pub recipes: Vec<String>,
    /// Programs; the first is called `wardround`.
    pub binaries: Vec<PathBuf>,
    pub added: Vec<Added>,
    /// The texts of licences, by component.
    pub licences: BTreeMap<String, PathBuf>,
    /// The texts that say what they may be used for, by component.
    pub policies: BTreeMap<String, PathBuf>,
    /// Sources and datasets that go in although their licences do not let copies be handed on: the sender was given leave.
    pub allowed: Vec<String>,
    /// Who accepted the licences of gated models.
    pub accepted_by: Option<String>,
    /// Whether files may go in that nothing says what they should be.
    pub unverified: bool,
    /// The manifest of the version that recipients have.
    pub since: Option<PathBuf>,
    /// Whether this program writes golden files over the models.
    pub golden: bool,
    /// The oldest kernel, and the oldest driver of GPUs, that the program runs on.
    pub kernel: Option<String>,
    pub driver: Option<String>,
    /// Bytes of the largest file that the media hold.
    pub split_bytes: Option<u64>,
    /// What all times in the bundle are, to the second.
    pub time: SystemTime,
    pub hub: HubOptions,
}

/// A file for one of the folders that nothing else fills.
#[derive(Clone, Debug)]
pub struct Added {
    pub role: Role,
    pub path: PathBuf,
}

/// What was made.
pub struct Created {
    pub manifest: Manifest,
    /// Components with files that nothing says what they should be.
    pub unverified: BTreeSet<String>,
    /// What goes in by leave, though licences do not let it be handed on.
    pub by_leave: BTreeSet<String>,
    /// Files of a whole bundle that nobody gave.
    pub lacking: Vec<&'static str>,
}

/// What this program cannot write and scanners and lawyers ask for.
const ASKED_FOR: [&str; 3] =
    ["sbom/wardround.cdx.json", "sbom/advisories.json", "licences/THIRD-PARTY.html"];

/// Makes a bundle.
///
/// # Errors
/// A model, file or licence that is missing, wrong, unknown, or may not be passed on; a place that cannot be written. Then nothing stays.
pub fn create(request: &Request) -> Result<Created, Failure> {
    if !is_name(&request.name) {
        return Err(BundleError::Name { name: request.name.clone(), what: "a bundle" }.into());
    }
    let partial = writer::Partial::begin(request)?;
    let older = request.since.as_deref().map(older).transpose()?;
    let mut contents = gather(request)?;
    let mut manifest = describe::manifest(request, &contents)?;
    if request.golden {
        golden::add(&mut contents)?;
    }
    manifest.previous = older.as_ref().map(|older| older.name.clone());
    page::add(&mut contents, &manifest)?;
    sbom::add(&mut contents, &manifest)?;
    if let Some(older) = &older {
        contents.leave_out(&older.manifest);
    }
    manifest.files = partial.write(&contents)?;
    manifest.requires.disk_bytes = manifest.size_bytes();
    // What would be refused later is not made.
    let text = manifest.text().map_err(std::io::Error::from)?;
    let manifest = Manifest::parse(text.as_bytes(), Path::new(MANIFEST))?;
    partial.finish(&manifest, &text)?;
    let lacking = ASKED_FOR.into_iter().filter(|path| manifest.file(path).is_none()).collect();
    let unverified = contents.unverified_components();
    Ok(Created { unverified, by_leave: contents.by_leave, lacking, manifest })
}

/// Everything that is asked for, found and summed.
fn gather(request: &Request) -> Result<Contents, Failure> {
    let mut contents = Contents::default();
    for (index, path) in request.binaries.iter().enumerate() {
        let name = match index {
            0 => "wardround".to_owned(),
            _ => file_name(path)?,
        };
        contents.add_file(&format!("bin/{name}"), path, Some(describe::PROGRAM))?;
    }
    contents.components.push(describe::program());
    checkpoints::add(&mut contents, request)?;
    data::add(&mut contents, request)?;
    corpora::add(&mut contents, request)?;
    for name in &request.recipes {
        Recipe::find(name)?;
        match recipe_text(name) {
            Some(text) => contents.add_text(&format!("recipes/{name}.toml"), text, None)?,
            None => {
                let path = Path::new(name);
                contents.add_file(&format!("recipes/{}", file_name(path)?), path, None)?;
            }
        }
    }
    for added in &request.added {
        if added.role == Role::Golden {
            golden::add_given(&mut contents, &added.path)?;
            continue;
        }
        let path = format!("{}/{}", added.role.folder(), file_name(&added.path)?);
        contents.add_file(&path, &added.path, None)?;
    }
    if let Some(name) = request.allowed.iter().find(|name| !contents.by_leave.contains(*name)) {
        return Err(Failure::usage(
            format!("--allow {name}: nothing of this name has to be allowed"),
            "name the source of a corpus, or the dataset, that is refused without it",
        ));
    }
    system::add(&mut contents)?;
    licences::add(&mut contents, request)?;
    contents.check(request.unverified)?;
    Ok(contents)
}

fn file_name(path: &Path) -> Result<String, BundleError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| BundleError::Name { name: path.display().to_string(), what: "a file" })
}

/// A manifest that recipients have, and how the bundle names it.
struct Older {
    manifest: Manifest,
    name: Previous,
}

fn older(path: &Path) -> Result<Older, BundleError> {
    let bytes = files::read_small(path, MOST_BYTES)?;
    let manifest = Manifest::parse(&bytes, path)?;
    Ok(Older { manifest, name: Previous { manifest_sha256: sha256(&bytes) } })
}
