//! `keys`: who may ask a server.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::exit::Failure;
use crate::console;
use crate::serve::keys::{Keys, Role};

#[derive(Debug, Subcommand)]
pub enum KeysVerb {
    /// Make a key, print it once, and add its hash to the file
    Add {
        /// File of keys; created if it does not exist
        file: PathBuf,
        /// Whose key it is
        name: String,
        /// What it allows
        #[arg(long, value_enum, default_value = "api")]
        role: Role,
    },
    /// List names and roles
    Ls {
        /// The file of keys
        file: PathBuf,
    },
    /// Take a key out of the file; a running server knows after SIGHUP
    Revoke {
        /// The file of keys
        file: PathBuf,
        /// Whose key it is
        name: String,
    },
}

impl KeysVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            KeysVerb::Add { file, name, role } => console::say(Keys::add(&file, &name, role)?)?,
            KeysVerb::Ls { file } => {
                for key in Keys::read(&file)?.list {
                    console::say(format!("{} {}", key.name, key.role.name()))?;
                }
            }
            KeysVerb::Revoke { file, name } => Keys::revoke(&file, &name)?,
        }
        Ok(())
    }
}
