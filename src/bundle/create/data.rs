//! Data: published files under the paths that recipes expect, a user's own beside them, and none that may not be passed on.

use std::path::{Path, PathBuf};

use super::Request;
use super::contents::{Contents, Kept, Known};
use crate::bundle::BundleError;
use crate::bundle::manifest::Component;
use crate::data::count_restricted;
use crate::diagnosis::Failure;
use crate::hub::{DatasetCard, FetchedFile, PROVENANCE, Record, sha256_file};

/// How far above a file the directory may lie that `data fetch` filled.
const MOST_FOLDERS: usize = 4;
/// The component of files that no card knows.
const OWN: &str = "own-data";

/// Adds every file that is asked for, and a `provenance.toml` of those that were fetched.
pub fn add(contents: &mut Contents, request: &Request) -> Result<(), Failure> {
    let mut record = Record::default();
    for given in &request.data {
        for path in files(given)? {
            let count = count_restricted(&path)?;
            if count > 0 {
                return Err(BundleError::Agreement { path, count }.into());
            }
            let file = recognise(given, &path)?;
            if let Some(card) =
                file.dataset.and_then(DatasetCard::find).filter(|card| !card.redistribute)
            {
                let (label, licence) = (&card.name, &card.licence.name);
                contents.allow(Kept { label, licence, path: &path }, request)?;
            }
            let place = format!("data/{}", file.path);
            let component = file.dataset.unwrap_or(OWN);
            if file.dataset.is_none() {
                contents.mark_unknown(&place, component)?;
            }
            let known =
                Known { path: place, file: &path, sha256: file.sha256, component: Some(component) };
            contents.add_known(known)?;
            add_component(contents, file.dataset);
            record.files.extend(file.fetched.map(|fetched| (file.path, fetched)));
        }
    }
    if !record.files.is_empty() {
        let text = toml::to_string_pretty(&record).map_err(std::io::Error::other)?;
        contents.add_text(&format!("data/{PROVENANCE}"), &text, None)?;
    }
    Ok(())
}

/// A file of data, as far as it is known.
struct Recognised {
    /// Below `data/`.
    path: String,
    sha256: String,
    /// The card's name.
    dataset: Option<&'static str>,
    fetched: Option<FetchedFile>,
}

/// A file, or all files below a folder but what `data fetch` wrote of them.
fn files(path: &Path) -> Result<Vec<PathBuf>, BundleError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = Vec::new();
    let mut entries: Vec<_> = fs_err::read_dir(path)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries.iter().filter(|entry| entry.file_name() != PROVENANCE) {
        all.extend(files(&entry.path())?);
    }
    Ok(all)
}

/// By its sum among the cards' published files, else by the `provenance.toml` of a directory that it lies in.
fn recognise(given: &Path, path: &Path) -> Result<Recognised, Failure> {
    let sha256 = sha256_file(path)?;
    for card in DatasetCard::all() {
        let mut published =
            card.files().map(|(_, file)| file).filter(|file| file.convert.is_none());
        if let Some(file) = published.find(|file| file.sha256.as_ref() == Some(&sha256)) {
            let path = file.path.clone();
            return Ok(Recognised { path, sha256, dataset: Some(&card.name), fetched: None });
        }
    }
    let absolute = std::path::absolute(path)?;
    for folder in absolute.ancestors().skip(1).take(MOST_FOLDERS) {
        // A model's provenance is another.
        let Ok(record) = Record::read(folder) else { continue };
        let inside =
            absolute.strip_prefix(folder).unwrap_or(&absolute).to_string_lossy().into_owned();
        let Some(fetched) = record.files.get(&inside) else { continue };
        if fetched.sha256 != sha256 {
            let problems = vec![format!("changed  {inside}: {PROVENANCE} says {}", fetched.sha256)];
            return Err(BundleError::Wrong { directory: folder.to_owned(), problems }.into());
        }
        if let Some(card) = DatasetCard::find(&fetched.dataset) {
            let (dataset, fetched) = (Some(card.name.as_str()), Some(fetched.clone()));
            return Ok(Recognised { path: inside, sha256, dataset, fetched });
        }
    }
    let inside = path.strip_prefix(given).ok().filter(|inside| *inside != Path::new(""));
    let name = inside
        .map(Path::to_path_buf)
        .or_else(|| path.file_name().map(PathBuf::from))
        .unwrap_or_default();
    Ok(Recognised {
        path: name.to_string_lossy().into_owned(),
        sha256,
        dataset: None,
        fetched: None,
    })
}

fn add_component(contents: &mut Contents, dataset: Option<&'static str>) {
    let name = dataset.unwrap_or(OWN);
    if contents.components.iter().any(|component| component.name == name) {
        return;
    }
    let card = dataset.and_then(DatasetCard::find);
    let source = card.and_then(|card| card.sources.first());
    contents.components.push(Component {
        name: name.to_owned(),
        revision: source.map(|source| source.revision.clone()),
        repository: source.map(|source| source.repository.clone()),
        licence: card.map_or_else(|| "not stated".to_owned(), |card| card.licence.name.clone()),
        licence_url: card.map(|card| card.licence.url.clone()),
        sums_known: card.is_some(),
        ..Component::default()
    });
}
