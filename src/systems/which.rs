//! Which system: one of the table by its name, or one that a file describes.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::file::{EXTENSION, SystemFile, SystemText};
use super::table::SystemEntry;
use crate::diagnosis::Failure;
use crate::outside;

/// Every verb and every recipe says it by a text, a name or the path of a file. Once read it holds what the file did, so that a recipe's
/// folder, a plan and a trail need the file no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Which {
    Named(String),
    File(SystemText),
}

impl Which {
    /// Reads the file, where the text is the path of one.
    pub fn read(text: &str) -> Result<Which, Failure> {
        match text.ends_with(EXTENSION) {
            true => Ok(Which::File(SystemText::read(Path::new(text))?)),
            false => Ok(Which::Named(text.to_owned())),
        }
    }

    /// Reads the file, where another one in `folder`, which may be somebody else's, has named it.
    pub fn read_below(&mut self, folder: &Path) -> Result<(), Failure> {
        if let Which::Named(text) = self
            && text.ends_with(EXTENSION)
        {
            let path = outside::below(folder, text).map_err(|error| {
                Failure::usage(error.to_string(), "put the file beside the one that names it")
            })?;
            *self = Which::File(SystemText::read(&path)?);
        }
        Ok(())
    }

    pub fn name(&self) -> &str {
        match self {
            Which::Named(name) => name,
            Which::File(text) => &text.name,
        }
    }

    /// Its line in the table, or the one that stands beside it for as long as the program runs.
    pub fn entry(&self) -> Result<&'static SystemEntry, Failure> {
        static OWN: Mutex<Vec<&'static SystemEntry>> = Mutex::new(Vec::new());
        let text = match self {
            Which::Named(name) => return SystemEntry::named(name),
            Which::File(text) => text,
        };
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |entry: &&&SystemEntry| entry.file.is_some_and(|file| file.source == *text);
        if let Some(known) = own.iter().find(is_it) {
            return Ok(known);
        }
        let entry = &*Box::leak(Box::new(SystemFile::of_source(text)?.entry()));
        own.push(entry);
        Ok(entry)
    }
}
