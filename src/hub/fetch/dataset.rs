//! Fetching a dataset's published files, each verified, and where needed converted, before it is put in its place.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::client::{Client, RemoteFile};
use super::convert::convert;
use super::progress::Progress;
use super::{client, incomplete, replace, transfer};
use crate::console;
use crate::hub::dataset::{
    Check, Conversion, DatasetCard, DatasetFile, DatasetSource, FetchedFile, Host, Record,
};
use crate::hub::provenance::PROVENANCE;
use crate::hub::{Authority, HubError, HubOptions, sha256_file};
use crate::outside;

/// Fetches the files of a dataset into the directory `to`; gives their paths. Files that are there and right are kept, an
/// interrupted download goes on where it stopped; a name with `*` stands for every file of the repository that it fits. `mirror` is the address of a server that has the paths of both hosts.
///
/// # Errors
/// [`HubError::DataForbidden`] before any connection where one is forbidden; else what a host, the network, a sum or the
/// file system refused.
pub fn fetch_dataset(
    card: &DatasetCard,
    to: &Path,
    mirror: Option<&str>,
    options: &HubOptions,
) -> Result<Vec<PathBuf>, HubError> {
    if let Some(reason) = options.fetch_refusal() {
        return Err(HubError::DataForbidden { dataset: card.name.clone(), reason });
    }
    let environment = &options.environment;
    let mirror = mirror.map(|address| address.trim_end_matches('/'));
    let to = std::path::absolute(to)?;
    fs_err::create_dir_all(&to)?;
    let mut fetch =
        DatasetFetch { card, record: Record::read(&to)?, to, progress: Progress::new(options) };
    let mut paths = Vec::new();
    for source in &card.sources {
        // The hub's token is for the hub alone.
        let is_hub = source.host == Host::Hub && mirror.is_none();
        let token = if is_hub { environment.token()? } else { None };
        let client = client(environment, token, None);
        let mut named = Vec::new();
        if source.files.iter().any(DatasetFile::is_pattern) {
            named = client.names(&source.listing_url(&environment.endpoint, mirror))?;
        }
        for file in source.files.iter().flat_map(|file| file.expanded(&named)) {
            let url = source.url(&file, &environment.endpoint, mirror);
            paths.push(fetch.file(&client, source, &file, url)?);
        }
    }
    Ok(paths)
}

struct DatasetFetch<'a> {
    card: &'a DatasetCard,
    to: PathBuf,
    /// What the directory has, of other datasets too.
    record: Record,
    progress: Progress,
}

impl DatasetFetch<'_> {
    /// Makes sure that one file is there and right.
    fn file(
        &mut self,
        client: &Client,
        source: &DatasetSource,
        file: &DatasetFile,
        url: String,
    ) -> Result<PathBuf, HubError> {
        let path = outside::below(&self.to, &file.path)?;
        let fetched = match self.kept(source, file, &path)? {
            Some(fetched) => fetched,
            None => self.download(client, source, file, url)?,
        };
        if self.record.files.insert(file.path.clone(), fetched.clone()) != Some(fetched) {
            let text = toml::to_string_pretty(&self.record).map_err(std::io::Error::other)?;
            replace(&self.to.join(PROVENANCE), &text)?;
        }
        Ok(path)
    }

    fn download(
        &self,
        client: &Client,
        source: &DatasetSource,
        file: &DatasetFile,
        url: String,
    ) -> Result<FetchedFile, HubError> {
        let remote = match file.size_bytes {
            Some(size_bytes) => RemoteFile { url, etag: source.revision.clone(), size_bytes },
            None => client.inspect(url, &file.path)?,
        };
        // A name does not tell one commit's file from another's.
        let revision = source.revision.replace('/', "-");
        let path = outside::below(&self.to, &file.path)?.with_added_extension(revision);
        let part = incomplete(&path);
        let bar = self.progress.start(&file.path, remote.size_bytes);
        let downloaded = transfer::download(client, &remote, &part, &bar);
        if downloaded.is_err() && file.convert == Some(Conversion::Keywords) {
            // Rows that may not be kept are not kept to go on from either.
            fs_err::remove_file(&part)?;
        }
        let source_sha256 = downloaded?;
        match self.put(file, &remote, &part, &source_sha256) {
            Ok(sha256) => {
                bar.finish();
                Ok(self.fetched(source, file, source_sha256, sha256))
            }
            Err(error) => {
                fs_err::remove_file(&part)?;
                Err(error)
            }
        }
    }

    /// What is known of the file, where it is there and as it should be.
    fn kept(
        &self,
        source: &DatasetSource,
        file: &DatasetFile,
        path: &Path,
    ) -> Result<Option<FetchedFile>, HubError> {
        if !path.is_file() {
            return Ok(None);
        }
        let sha256 = sha256_file(path)?;
        if file.convert.is_none() && file.sha256.as_ref() == Some(&sha256) {
            return Ok(Some(self.fetched(source, file, sha256.clone(), sha256)));
        }
        // What was converted, or has no known sum, is right where it is as this very published file left it.
        let fetched = self.record.files.get(&file.path).filter(|fetched| {
            let source_sha256 = fetched.source_sha256.clone();
            file.sha256.as_ref().is_none_or(|sum| *sum == source_sha256)
                && (file.convert.is_some() || file.sha256.is_none())
                && **fetched == self.fetched(source, file, source_sha256, sha256)
        });
        Ok(fetched.cloned())
    }

    fn fetched(
        &self,
        source: &DatasetSource,
        file: &DatasetFile,
        source_sha256: String,
        sha256: String,
    ) -> FetchedFile {
        FetchedFile {
            dataset: self.card.name.clone(),
            repository: source.repository.clone(),
            revision: source.revision.clone(),
            source: file.source.clone(),
            source_sha256,
            sha256,
        }
    }

    /// Checks a whole download and puts what comes of it in its place; gives that file's sum.
    fn put(
        &self,
        file: &DatasetFile,
        remote: &RemoteFile,
        part: &Path,
        sha256: &str,
    ) -> Result<String, HubError> {
        let name = || format!("{} from {}", file.path, remote.url);
        if let Some(expected) = file.sha256.as_ref().filter(|expected| *expected != sha256) {
            return Err(HubError::WrongSum {
                file: name(),
                expected: expected.clone(),
                actual: sha256.to_owned(),
                authority: Authority::Card,
            });
        }
        let path = outside::below(&self.to, &file.path)?;
        let unreadable = |reason| HubError::Unconvertible { file: name(), reason };
        let converted = file.convert.map(|conversion| convert(conversion, part)).transpose();
        let converted = converted.map_err(unreadable)?;
        if let Some(expected) = file.rows {
            let found = match &converted {
                Some(converted) => converted.rows,
                None => rows(file, part)?,
            };
            if found != expected {
                return Err(HubError::WrongRows { file: name(), expected, found });
            }
        }
        if file.check == Check::Rows {
            let checked = match file.rows {
                Some(rows) => format!("it was checked by its {rows} rows alone"),
                None => "it was taken as it came".to_owned(),
            };
            console::note(format!(
                "note: {}: the sum of the published file is not known; {checked}",
                file.path
            ));
        }
        let Some(converted) = converted else {
            fs_err::rename(part, &path)?;
            return Ok(sha256.to_owned());
        };
        if let Some(notice) = &converted.notice {
            console::note(format!("note: {}: {notice}", file.path));
        }
        replace(&path, &converted.text)?;
        fs_err::remove_file(part)?;
        Ok(sha256_file(&path)?)
    }
}

/// Records of a CSV file after its header, elements of a JSON array; of any other, lines that are not blank.
fn rows(file: &DatasetFile, path: &Path) -> Result<u64, HubError> {
    let text = outside::text(path)?;
    let elements = || serde_json::from_str::<Vec<IgnoredAny>>(&text);
    Ok(match Path::new(&file.source).extension().and_then(OsStr::to_str) {
        Some("csv") => csv::Reader::from_reader(text.as_bytes()).records().count() as u64,
        Some("json") => elements().map_or(0, |elements| elements.len() as u64),
        _ => text.lines().filter(|line| !line.trim().is_empty()).count() as u64,
    })
}
