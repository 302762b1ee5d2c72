//! `keys`: manages the API keys of a server.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::serve::keys::{add, revoke};

#[derive(Debug, Subcommand)]
pub enum KeysVerb {
    /// Make a key, print it once, and add its hash to the file
    Add {
        /// File of keys; created if it does not exist
        file: PathBuf,
        /// Name of the key's holder
        name: String,
    },
    /// Remove a key from the file; a running server reloads the file on SIGHUP
    Revoke {
        /// The file of keys
        file: PathBuf,
        /// Name of the key's holder
        name: String,
    },
}

impl KeysVerb {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let (KeysVerb::Add { file, .. } | KeysVerb::Revoke { file, .. }) = &self;
        given.write_beside(file)?.enter()?;
        match self {
            KeysVerb::Add { file, name } => console::say(add(&file, &name)?)?,
            KeysVerb::Revoke { file, name } => revoke(&file, &name)?,
        }
        Ok(())
    }
}
