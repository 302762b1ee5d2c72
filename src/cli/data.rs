//! `data`: fetches, lists and verifies the datasets of recipes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::models::tell_checks;
use super::options::FetchFlags;
use crate::cli::exit::Failure;
use crate::console;
use crate::hub::{self, DatasetCard, HubError};

/// The name for all datasets that have a card.
const ALL: &str = "all";

#[derive(Debug, Subcommand)]
pub enum Data {
    /// Download datasets into a directory, in the layout that --data-dir of recipes expects
    Fetch(Fetch),
    /// List the known datasets and whether their files are in a directory
    Ls(List),
    /// Check a directory's datasets against their recorded SHA-256 checksums
    Verify(Verify),
}

#[derive(Debug, Args)]
pub struct Fetch {
    /// Datasets by their cards, as `data ls` lists them, or all; or files of cards
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    from: FetchFlags,
}

#[derive(Debug, Args)]
pub struct List {
    /// Directory to look in
    directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// Directory that datasets were fetched into
    directory: PathBuf,
}

run_each!(Data: Fetch, Ls, Verify);

impl Fetch {
    fn run(self) -> Result<(), Failure> {
        let options = self.from.options()?;
        // A mistake in a name is reported before anything is fetched.
        let mut cards = Vec::new();
        for name in &self.names {
            match name.as_str() {
                ALL => cards.extend(DatasetCard::all().iter().cloned()),
                name => cards.push(DatasetCard::open(name)?),
            }
        }
        // One publisher that cannot be reached keeps back no other's files.
        let mut failed: Option<Failure> = None;
        for card in &cards {
            if let Err(error) = self.from.fetch(card, &options) {
                match &failed {
                    None => failed = Some(error),
                    Some(_) => console::note(format!("{}: {error}", card.name)),
                }
                continue;
            }
            console::note(format!("{}: licence {}", card.name, card.licence.name));
            if let Some(note) = &card.note {
                console::note(format!("note: {}: {note}", card.name));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        if let Some(path) = self.directory.as_ref().filter(|path| !path.is_dir()) {
            return Err(HubError::NoDataDirectory { path: path.clone() }.into());
        }
        for card in DatasetCard::all() {
            let files = card.files().count();
            let state = match &self.directory {
                None => String::new(),
                Some(directory) => match hub::here(card, directory) {
                    0 => "not here".to_owned(),
                    here if here == files => format!("all {files} here"),
                    here => format!("{here} of {files} here"),
                },
            };
            let size = card.size_bytes();
            let size =
                size.map_or("unknown".into(), |bytes| format!("{:5.1} MB", bytes as f64 / 1e6));
            let line = format!(
                "{:20} {size:8}  {state:12} {}: {}; licence: {}",
                card.name, card.title, card.records, card.licence.name
            );
            console::say(line)?;
        }
        Ok(())
    }
}

impl Verify {
    fn run(self) -> Result<(), Failure> {
        tell_checks(&hub::verify_datasets(&self.directory)?, &self.directory)
    }
}
