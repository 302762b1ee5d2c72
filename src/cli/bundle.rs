//! `bundle`: a folder for an air gap, and whether it is as it was signed.

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::sandboxed::Paths;
use crate::bundle::create::create;
use crate::bundle::verify::verify;
use crate::bundle::{SUMS, Size};
use crate::cli::exit::Failure;
use crate::console;
use crate::record::count;

#[derive(Debug, Subcommand)]
pub enum BundleVerb {
    /// Write the checksums of a folder's files into it, and print the command that signs them
    Create {
        /// The folder, with all that it is to hold
        directory: PathBuf,
    },
    /// Check a bundle's signature and the checksums of all its files
    Verify {
        /// The bundle
        directory: PathBuf,
        /// The public key of minisign that must have signed it: a file that came by another way
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
}

impl BundleVerb {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        match self {
            BundleVerb::Create { directory } => {
                given.write_in(&directory).enter()?;
                let size = create(&directory)?;
                console::note(described(&directory, size));
                console::note("It is not signed yet. Sign it where the key is:");
                let sums = directory.join(SUMS);
                console::say(format!("minisign -S -s KEY -m {}", sums.display()))?;
            }
            BundleVerb::Verify { directory, key } => {
                // It has no flag to be quiet: a sandbox that holds in part is said.
                Paths { is_quiet: false, ..given }.enter()?;
                let (size, comment) = verify(&directory, &key)?;
                console::say(format!("signed  {}", console::plain(&comment)))?;
                console::say(format!("intact  {}", described(&directory, size)))?;
            }
        }
        Ok(())
    }
}

fn described(directory: &Path, Size { files, bytes }: Size) -> String {
    let (files, megabytes) = (count(files, "file"), bytes as f64 / 1e6);
    format!("{}: {files}, {megabytes:.1} MB", directory.display())
}
