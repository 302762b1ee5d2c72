//! Models, scorers and encoders: each verified against the sums that are known, and copied as `models fetch --to` writes it.

use std::collections::BTreeMap;

use super::Request;
use super::contents::{Contents, Known};
use crate::bundle::BundleError;
use crate::bundle::manifest::{Component, ComponentKind, is_name};
use crate::diagnosis::Failure;
use crate::hub::{self, Checkpoint, FileCheck, HubOptions, PROVENANCE, Provenance, Status};
use crate::synth;

/// Where a folder holds the encoder of queries beside that of documents.
const QUERY: &str = "query";

/// A checkpoint and where it goes.
struct Placed {
    checkpoint: Checkpoint,
    kind: ComponentKind,
    name: String,
    /// The folder of its files.
    folder: String,
}

/// Adds the models, every folder of the folder of scorers, and the encoders.
pub fn add(contents: &mut Contents, request: &Request) -> Result<(), Failure> {
    let hub = request.hub()?;
    for member in &request.models {
        add_placed(contents, &place(member, ComponentKind::Model, &hub)?)?;
    }
    if let Some(folder) = &request.scorers {
        let mut entries: Vec<_> = fs_err::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        let paths = entries.iter().map(|entry| entry.path()).filter(|path| path.is_dir());
        for path in paths {
            let placed = place(&path.to_string_lossy(), ComponentKind::Scorer, &hub)?;
            add_placed(contents, &placed)?;
        }
    }
    for path in &request.encoders {
        let placed = place(&path.to_string_lossy(), ComponentKind::Encoder, &hub)?;
        add_placed(contents, &placed)?;
        let query = path.join(QUERY);
        if query.is_dir() {
            let of_queries = Placed {
                checkpoint: hub::resolve(&query.to_string_lossy(), &hub)?,
                kind: ComponentKind::Encoder,
                name: format!("{}-{QUERY}", placed.name),
                folder: format!("{}/{QUERY}", placed.folder),
            };
            add_placed(contents, &of_queries)?;
        }
    }
    Ok(())
}

fn place(member: &str, kind: ComponentKind, options: &HubOptions) -> Result<Placed, Failure> {
    let checkpoint = hub::resolve(member, options)?;
    let name = name_of(&checkpoint)?;
    let folder = format!("{}/{name}", kind.folder());
    Ok(Placed { checkpoint, kind, name, folder })
}

/// The card's name, or the checkpoint's own with `--` for slashes, as the hub's cache spells it.
fn name_of(checkpoint: &Checkpoint) -> Result<String, BundleError> {
    let name = checkpoint
        .card
        .map_or_else(|| checkpoint.name.replace('/', "--"), |card| card.name.clone());
    match is_name(&name) {
        true => Ok(name),
        false => Err(BundleError::Name { name, what: "a model" }),
    }
}

fn add_placed(contents: &mut Contents, placed: &Placed) -> Result<(), Failure> {
    let Placed { checkpoint, name, folder, .. } = placed;
    let checks: BTreeMap<String, FileCheck> =
        hub::verify(checkpoint)?.into_iter().map(|check| (check.name.clone(), check)).collect();
    refuse_wrong(checkpoint, &checks)?;
    let mut known = BTreeMap::new();
    for (file, path) in checkpoint.named_files() {
        let Some(check) = checks.get(&file) else { continue };
        let sha256 = check.sha256.clone().unwrap_or_default();
        let place = format!("{folder}/{file}");
        match check.status {
            Status::Ok(_) => _ = known.insert(file, sha256.clone()),
            _ => contents.mark_unknown(&place, name)?,
        }
        contents.add_known(Known { path: place, file: &path, sha256, component: Some(name) })?;
    }
    let sums_known = contents.unknown.values().all(|component| component != name);
    let marker = checkpoint.directory.join(synth::MARKER);
    if marker.is_file() {
        // What says that its answers are noise.
        contents.add_file(&format!("{folder}/{}", synth::MARKER), &marker, Some(name))?;
    }
    if let (Some(repository), Some(revision)) = (&checkpoint.repository, &checkpoint.revision) {
        let (repository, revision) = (repository.clone(), revision.clone());
        let provenance = Provenance { repository, revision, sha256: known };
        let text = toml::to_string_pretty(&provenance).map_err(std::io::Error::other)?;
        contents.add_text(&format!("{folder}/{PROVENANCE}"), &text, Some(name))?;
    }
    contents.components.push(Component { sums_known, ..component(placed) });
    Ok(())
}

fn refuse_wrong(
    checkpoint: &Checkpoint,
    checks: &BTreeMap<String, FileCheck>,
) -> Result<(), BundleError> {
    let wrong = checks.values().filter_map(|check| match &check.status {
        Status::Ok(_) | Status::Unknown => None,
        Status::Missing => Some(format!("missing  {}", check.name)),
        Status::Mismatch { authority, expected } => {
            Some(format!("changed  {}: {authority} says {expected}", check.name))
        }
    });
    BundleError::refuse_wrong(&checkpoint.directory, wrong.collect())
}

fn component(Placed { checkpoint, kind, name, .. }: &Placed) -> Component {
    let card = checkpoint.card;
    let licence = card.map(|card| &card.licence);
    Component {
        name: name.clone(),
        kind: *kind,
        revision: checkpoint.revision.clone(),
        repository: checkpoint.repository.clone(),
        licence: licence.map_or_else(|| "not stated".to_owned(), |licence| licence.name.clone()),
        licence_url: licence.map(|licence| licence.url.clone()),
        gated: card.is_some_and(|card| card.gated),
        shown: licence.and_then(|licence| licence.shown.clone()),
        ..Component::default()
    }
}
