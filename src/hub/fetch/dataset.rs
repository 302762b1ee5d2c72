//! Fetching a dataset's published files, each verified, and where needed converted, before it is put in its place.

use std::path::{Path, PathBuf};

use super::client::{Client, RemoteFile};
use super::convert::convert;
use super::{Known, bring, incomplete};
use crate::console;
use crate::digest::sha256;
use crate::hub::options::HUB;
use crate::hub::provenance::{FetchedFile, Record};
use crate::hub::{
    Conversion, DatasetCard, DatasetFile, HubError, HubOptions, PROVENANCE, sha256_file, write_toml,
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
    let mut record = Record::read(&to)?;
    let mut paths = Vec::new();
    for file in &card.files {
        // The hub's token is for the hub alone.
        let of_hub = file.url.strip_prefix(HUB).filter(|rest| rest.starts_with('/'));
        let (url, token) = match of_hub {
            Some(rest) => (format!("{}{rest}", options.endpoint), options.token()?),
            None => (file.url.clone(), None),
        };
        let path = outside::below(&to, &file.path)?;
        let wanted = Wanted { file, url, path: &path };
        let fetched = match wanted.kept(&record)? {
            Some(fetched) => fetched,
            None => wanted.download(&Client::new(options, token, None), options)?,
        };
        if record.files.insert(file.path.clone(), fetched.clone()) != Some(fetched) {
            write_toml(&to.join(PROVENANCE), &record)?;
        }
        paths.push(path);
    }
    Ok(paths)
}

/// A file, where it is published and where it belongs.
struct Wanted<'a> {
    file: &'a DatasetFile,
    /// Its own, or that of the hub's mirror.
    url: String,
    path: &'a Path,
}

impl Wanted<'_> {
    /// What is known of the file, where it is there and as it should be.
    fn kept(&self, record: &Record) -> Result<Option<FetchedFile>, HubError> {
        let recorded = record.files.get(&self.file.path);
        let published = self.file.sha256.as_ref().or(recorded.map(|file| &file.source_sha256));
        let Some(published) = published.filter(|_| self.path.is_file()) else { return Ok(None) };
        let found = self.fetched(published.clone(), sha256_file(self.path)?);
        // What was converted, or has no known sum, is right where it is as this very published file left it.
        let is_right = match self.file.convert.is_none() && self.file.sha256.is_some() {
            true => found.sha256 == found.source_sha256,
            false => recorded == Some(&found),
        };
        Ok(is_right.then_some(found))
    }

    fn fetched(&self, source_sha256: String, sha256: String) -> FetchedFile {
        FetchedFile { source: self.file.url.clone(), source_sha256, sha256 }
    }

    fn download(&self, client: &Client, options: &HubOptions) -> Result<FetchedFile, HubError> {
        let (file, url) = (self.file, self.url.clone());
        // A name does not tell one address's file from another's.
        let part = incomplete(&self.path.with_added_extension(&sha256(&url)[..16]));
        let remote = match file.size_bytes {
            // Its card says what an etag would.
            Some(size_bytes) => RemoteFile { url, etag: String::new(), size_bytes },
            None => client.inspect(url, &file.path)?,
        };
        let put = |source_sha256: &str| {
            let sha256 = self.put(&part, source_sha256)?;
            Ok(self.fetched(source_sha256.to_owned(), sha256))
        };
        let fetched = bring(client, options, &file.path, &remote, &part, put);
        if fetched.is_err() && file.convert == Some(Conversion::Keywords) {
            // Rows that may not be kept are not kept to go on from either.
            outside::if_there(fs_err::remove_file(&part))?;
        }
        fetched
    }

    /// Checks a whole download and puts what comes of it in its place; gives that file's sum.
    fn put(&self, part: &Path, sha256: &str) -> Result<String, HubError> {
        let name = format!("{} from {}", self.file.path, self.url);
        let of_card = self.file.sha256.as_deref();
        Known { name: &name, of_card, of_hub: None }.check(part, sha256)?;
        if of_card.is_none() {
            let unknown = "the sum of the published file is not known";
            console::note(format!("note: {}: {unknown}", self.file.path));
        }
        let Some(conversion) = self.file.convert else {
            fs_err::rename(part, self.path)?;
            return Ok(sha256.to_owned());
        };
        let text = convert(conversion, part).map_err(|reason| {
            let problem = format!("cannot be converted: {reason}");
            HubError::Changed { file: name, problem }
        })?;
        outside::replace(self.path, &text, false)?;
        fs_err::remove_file(part)?;
        Ok(sha256_file(self.path)?)
    }
}
