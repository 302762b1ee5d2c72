//! A checkpoint: one directory that holds everything a model is run from, complete or refused.

use std::path::{Path, PathBuf};

use super::provenance::origin;
use super::{Card, HubError, Kind};
use crate::checkpoint::{CONFIG, CheckpointFiles, TOKENIZER, incomplete};
use crate::outside;

/// A checkpoint whose files were all there when it was found.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The card's name, the hub id, or the directory's last component.
    pub name: String,
    pub directory: PathBuf,
    /// The hub id, where the files came from the hub or its cache.
    pub repository: Option<String>,
    /// The commit that the files belong to, where they came from the hub or its cache.
    pub revision: Option<String>,
    pub card: Option<&'static Card>,
    pub files: CheckpointFiles,
}

impl Checkpoint {
    /// Finds the files of a directory that a model of its card is run from; without a card, a decoder's.
    ///
    /// # Errors
    /// A file is missing, or the index of shards is damaged.
    pub fn open(name: &str, directory: &Path) -> Result<Self, HubError> {
        let origin = origin(directory)?;
        let card = origin.as_ref().and_then(|(id, _)| Card::find(id));
        let files = match card {
            Some(card) if card.kind == Kind::Encoder => find_listed(directory, card)?,
            _ => CheckpointFiles::find(directory)?,
        };
        let (repository, revision) = origin.unzip();
        let (name, directory) = (name.to_owned(), directory.to_owned());
        Ok(Self { name, directory, repository, revision, card, files })
    }

    /// The tokenizer's file.
    ///
    /// # Errors
    /// The directory has none.
    pub fn tokenizer(&self) -> Result<&Path, HubError> {
        let tokenizer = self.files.tokenizer.as_deref();
        Ok(tokenizer.ok_or_else(|| incomplete(&self.directory, TOKENIZER))?)
    }

    /// Every file with its name relative to the directory, `/` between components; weights last.
    pub fn named_files(&self) -> Vec<(String, PathBuf)> {
        let files = &self.files;
        [Some(&files.config), files.generation_config.as_ref(), files.tokenizer.as_ref()]
            .into_iter()
            .flatten()
            .chain(&files.others)
            .map(|path| self.named(path))
            .chain(self.named_weights())
            .collect()
    }

    /// The weight files with their names, for [`super::digest_files`].
    pub fn named_weights(&self) -> Vec<(String, PathBuf)> {
        self.files.weights.iter().map(|path| self.named(path)).collect()
    }

    fn named(&self, path: &Path) -> (String, PathBuf) {
        (outside::relative(path, &self.directory), path.to_owned())
    }
}

/// Finds what an encoder's card lists.
fn find_listed(directory: &Path, card: &Card) -> Result<CheckpointFiles, HubError> {
    let mut files =
        CheckpointFiles { config: directory.join(CONFIG), ..CheckpointFiles::default() };
    for file in &card.files {
        let mut paths = file.names().map(|name| directory.join(name));
        let path = paths.find(|path| path.is_file());
        let names = || file.names().collect::<Vec<_>>().join(" or ");
        let path = path.ok_or_else(|| incomplete(directory, &names()))?;
        match file.name.as_str() {
            CONFIG => files.config = path,
            TOKENIZER => files.tokenizer = Some(path),
            _ if file.instead.is_some() => files.weights.push(path),
            _ => files.others.push(path),
        }
    }
    Ok(files)
}
