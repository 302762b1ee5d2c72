//! Fetching a dataset's published files, each verified, and where needed converted, before it is put in its place.

use std::path::{Path, PathBuf};

use super::client::{Client, RemoteFile};
use super::convert::convert;
use super::{Known, bring, incomplete};
use crate::console;
use crate::hub::options::without_login;
use crate::hub::{
    Conversion, DatasetCard, DatasetFile, DatasetSource, FetchedFile, Host, HubError, HubOptions,
    PROVENANCE, Record, sha256_file,
};
use crate::outside;

const GITHUB: &str = "https://raw.githubusercontent.com";

/// Fetches the files of a dataset into the directory `to`; gives their paths. Files that are there and right are kept, an
/// interrupted download goes on where it stopped. `mirror` is the address of a server that has the paths of both hosts.
///
/// # Errors
/// [`HubError::Forbidden`] before any connection where one is forbidden; else what a host, the network, a sum or the
/// file system refused.
pub fn fetch_dataset(
    card: &DatasetCard,
    to: &Path,
    mirror: Option<&str>,
    options: &HubOptions,
) -> Result<Vec<PathBuf>, HubError> {
    options.allow_fetch("data", &card.name)?;
    let mirror = mirror.map(without_login);
    let to = std::path::absolute(to)?;
    fs_err::create_dir_all(&to)?;
    let mut record = Record::read(&to)?;
    let mut paths = Vec::new();
    for source in &card.sources {
        // The hub's token is for the hub alone.
        let (root, login, token) = match (&mirror, source.host) {
            (Some((address, login)), _) => (address.as_str(), login.as_ref(), None),
            (None, Host::Hub) => (&*options.endpoint, options.login.as_ref(), options.token()?),
            (None, Host::Github) => (GITHUB, None, None),
        };
        let client = Client::new(options, token, login, None);
        for file in &source.files {
            let (url, path) = (source.url(root, file), outside::below(&to, &file.path)?);
            let wanted = Wanted { card: &card.name, source, file, url, path: &path };
            let fetched = match wanted.kept(&record)? {
                Some(fetched) => fetched,
                None => wanted.download(&client, options)?,
            };
            if record.files.insert(file.path.clone(), fetched.clone()) != Some(fetched) {
                let text = toml::to_string_pretty(&record).map_err(std::io::Error::other)?;
                outside::replace(&to.join(PROVENANCE), text, false)?;
            }
            paths.push(path);
        }
    }
    Ok(paths)
}

/// A file, where it is published and where it belongs.
struct Wanted<'a> {
    /// The card's name.
    card: &'a str,
    source: &'a DatasetSource,
    file: &'a DatasetFile,
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
        FetchedFile {
            dataset: self.card.to_owned(),
            repository: self.source.repository.clone(),
            revision: self.source.revision.clone(),
            source: self.file.source.clone(),
            source_sha256,
            sha256,
        }
    }

    fn download(&self, client: &Client, options: &HubOptions) -> Result<FetchedFile, HubError> {
        let (file, url) = (self.file, self.url.clone());
        let remote = match file.size_bytes {
            // Its card says what an etag would.
            Some(size_bytes) => RemoteFile { url, etag: String::new(), size_bytes },
            None => client.inspect(url, &file.path)?,
        };
        // A name does not tell one commit's file from another's.
        let revision = self.source.revision.replace('/', "-");
        let part = incomplete(&self.path.with_added_extension(revision));
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
        let file = self.file;
        let name = format!("{} from {}", file.path, self.url);
        let of_card = file.sha256.as_deref();
        Known { name: &name, of_card, of_hub: None }.check(part, sha256)?;
        let changed = |problem| HubError::Changed { file: name.clone(), problem };
        let converted = file.convert.map(|conversion| convert(conversion, part)).transpose();
        let converted =
            converted.map_err(|reason| changed(format!("cannot be converted: {reason}")))?;
        if let Some(expected) = file.rows {
            let found = match &converted {
                Some(converted) => converted.rows,
                None => rows(file, part)?,
            };
            if found != expected {
                return Err(changed(format!("has {found} rows, but its card says {expected}")));
            }
        }
        if file.sha256.is_none() {
            let unknown = "the sum of the published file is not known";
            console::note(format!("note: {}: {unknown}", file.path));
        }
        let Some(converted) = converted else {
            fs_err::rename(part, self.path)?;
            return Ok(sha256.to_owned());
        };
        if let Some(notice) = &converted.notice {
            console::note(format!("note: {}: {notice}", file.path));
        }
        outside::replace(self.path, &converted.text, false)?;
        fs_err::remove_file(part)?;
        Ok(sha256_file(self.path)?)
    }
}

/// Records of a CSV file after its header; of any other, lines that are not blank.
fn rows(file: &DatasetFile, path: &Path) -> Result<u64, HubError> {
    let text = outside::text(path)?;
    let count = match file.source.ends_with(".csv") {
        true => csv::Reader::from_reader(text.as_bytes()).records().count(),
        false => text.lines().filter(|line| !line.trim().is_empty()).count(),
    };
    Ok(count as u64)
}
