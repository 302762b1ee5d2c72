//! Fetching a dataset's published files, each verified, and where needed converted, before it is put in its place.

use std::path::{Path, PathBuf};

use super::client::Client;
use super::convert::convert;
use super::transfer::RemoteFile;
use super::{bring, check, incomplete};
use crate::console;
use crate::digest::sha256;
use crate::hub::options::HUB;
use crate::hub::provenance::{self, FetchedFile, Record};
use crate::hub::{
    Authority, Conversion, DatasetCard, DatasetFile, HubError, HubOptions, sha256_file,
};
use crate::outside;

/// Fetches the files of a dataset into the directory `to`; gives their paths. Files that are there and right are kept, an
/// interrupted download goes on where it stopped.
///
/// # Errors
/// [`HubError::Forbidden`] before any connection where one is forbidden; else what a host, the network, a sum or the
/// file system refused.
pub fn fetch_dataset(
    card: &DatasetCard,
    to: &Path,
    options: &HubOptions,
) -> Result<Vec<PathBuf>, HubError> {
    options.allow_fetch("data", &card.name)?;
    let to = std::path::absolute(to)?;
    fs_err::create_dir_all(&to)?;
    let mut record: Record = provenance::read(&to)?.unwrap_or_default();
    let mut paths = Vec::new();
    for file in &card.files {
        let path = outside::below(&to, &file.path)?;
        if !is_kept(file, &path, &record)? {
            let sha256 = download(file, &path, options)?;
            let fetched = FetchedFile { source: file.url.clone(), sha256 };
            record.files.insert(file.path.clone(), fetched);
            provenance::write(&to, &record)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// Whether a file is there and as it should be.
fn is_kept(file: &DatasetFile, path: &Path, record: &Record) -> Result<bool, HubError> {
    if !path.is_file() {
        return Ok(false);
    }
    let sha256 = sha256_file(path)?;
    Ok(match &file.sha256 {
        Some(published) if file.convert.is_none() => *published == sha256,
        // What was converted, or has no known sum, is right where it is as this very address left it.
        _ => {
            let left = FetchedFile { source: file.url.clone(), sha256 };
            record.files.get(&file.path) == Some(&left)
        }
    })
}

/// Downloads a file, checks it and puts what comes of it in its place; gives that file's sum.
fn download(file: &DatasetFile, path: &Path, options: &HubOptions) -> Result<String, HubError> {
    // The hub's token is for the hub alone.
    let of_hub = file.url.strip_prefix(HUB).filter(|rest| rest.starts_with('/'));
    let (url, token) = match of_hub {
        Some(rest) => (format!("{}{rest}", options.endpoint), options.token()?),
        None => (file.url.clone(), None),
    };
    let client = Client::new(options, token, None)?;
    let name = format!("{} from {url}", file.path);
    // A name does not tell one address's file from another's.
    let part = incomplete(&path.with_added_extension(&sha256(&url)[..16]));
    let remote = RemoteFile { url, size_bytes: file.size_bytes };
    let placed = bring(&client, options, &file.path, &remote, &part, |sha256| {
        let of_card = file.sha256.as_deref();
        check(&name, sha256, &[(Authority::Card, of_card)])?;
        if of_card.is_none() {
            let unknown = "the sum of the published file is not known";
            console::note(format!("note: {}: {unknown}", file.path));
        }
        let Some(conversion) = file.convert else {
            fs_err::rename(&part, path)?;
            return Ok(sha256.to_owned());
        };
        let text = convert(conversion, &part).map_err(|reason| {
            let problem = format!("cannot be converted: {reason}");
            HubError::Changed { file: name.clone(), problem }
        })?;
        outside::replace(path, &text, false)?;
        fs_err::remove_file(&part)?;
        Ok(sha256_file(path)?)
    });
    if placed.is_err() && file.convert == Some(Conversion::Keywords) {
        // Rows that may not be kept are not kept to go on from either.
        outside::if_there(fs_err::remove_file(&part))?;
    }
    placed
}
