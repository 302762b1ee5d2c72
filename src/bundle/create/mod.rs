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
mod request;
mod sbom;
mod system;
mod writer;

use std::collections::BTreeSet;
use std::path::Path;

use self::contents::Contents;
pub use self::request::{Added, Request};
use super::manifest::{MOST_BYTES, Manifest, Previous, Role, is_name};
use super::{BundleError, MANIFEST, files};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::experiment::recipe::{Recipe, recipe_text};

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
    let name = request.name()?;
    if !is_name(&name) {
        return Err(BundleError::Name { name, what: "a bundle" }.into());
    }
    request.refuse_two_texts()?;
    let partial = writer::Partial::begin(request)?;
    let older = request.since.as_deref().map(older).transpose()?;
    let mut contents = gather(request)?;
    let mut manifest = describe::manifest(name, request, &contents)?;
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
