//! Built corpora: whole ones, of sources whose licences let copies be handed on.

use std::path::{Path, PathBuf};

use super::contents::{Contents, Kept, Known};
use super::{Request, file_name};
use crate::bundle::BundleError;
use crate::bundle::manifest::Component;
use crate::corpus::store::manifest::{Local, MANIFEST, Manifest, ManifestFile};
use crate::corpus::verify::verify;
use crate::diagnosis::Failure;

/// Adds the corpora that are asked for, each below `data/`.
pub fn add(contents: &mut Contents, request: &Request) -> Result<(), Failure> {
    for directory in &request.corpora {
        add_one(contents, directory, request)?;
    }
    Ok(())
}

fn add_one(contents: &mut Contents, directory: &Path, request: &Request) -> Result<(), Failure> {
    let wrong: Vec<String> = verify(directory)?
        .into_iter()
        .filter_map(|check| Some(format!("changed  {}: {}", check.name, check.problem?)))
        .collect();
    BundleError::refuse_wrong(directory, wrong)?;
    let ManifestFile { manifest, local, .. } = ManifestFile::read(&directory.join(MANIFEST))?;
    for source in manifest.sources.iter().map(|source| &source.description) {
        if !source.redistribute {
            let (label, licence) = (&source.label, &source.licence);
            contents.allow(Kept { label, licence, path: directory }, request)?;
        }
    }
    let folder = format!("data/{}", file_name(&std::path::absolute(directory)?)?);
    let component = component(&manifest);
    for stored in &manifest.files {
        contents.add_known(Known {
            path: format!("{folder}/{}", stored.name),
            file: &directory.join(&stored.name),
            sha256: stored.sha256.clone(),
            component: Some(&component.name),
        })?;
    }
    // Where things lay on the sender's machine is nobody's business; it is no part of the corpus's id.
    let encoder = PathBuf::from(file_name(&local.encoder)?);
    let local = Local { data: PathBuf::new(), encoder, ..local };
    let text = ManifestFile::new(manifest, local)?.text()?;
    contents.add_text(&format!("{folder}/{MANIFEST}"), &text, Some(&component.name))?;
    contents.components.push(component);
    Ok(())
}

fn component(manifest: &Manifest) -> Component {
    let mut licences: Vec<&str> =
        manifest.sources.iter().map(|source| source.description.licence.as_str()).collect();
    licences.sort_unstable();
    licences.dedup();
    Component {
        name: manifest.name.clone(),
        licence: licences.join("; "),
        sums_known: true,
        ..Component::default()
    }
}
