//! `bundle`: a folder for an air gap, and whether it is as it was signed.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::sandboxed::Paths;
use super::summary::count;
use crate::bundle::create::create;
use crate::bundle::verify::verify;
use crate::bundle::{SUMS, Size};
use crate::cli::exit::Failure;
use crate::console;

#[derive(Debug, Subcommand)]
pub enum BundleVerb {
    /// Write the checksums of a folder's files into it, and print the command that signs them
    Create(Create),
    /// Check a bundle's signature and the checksums of all its files
    Verify(Verify),
}

run_each!(BundleVerb: Create, Verify);

#[derive(Debug, Args)]
pub struct Create {
    /// The folder, with all that it is to hold
    directory: PathBuf,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle
    directory: PathBuf,
    /// The public key of minisign that must have signed it: a file that came by another way
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl Create {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.write_in(&self.directory).enter()?;
        let size = create(&self.directory)?;
        console::note(described(&self.directory, size));
        console::note("It is not signed yet. Sign it where the key is:");
        Ok(console::say(format!("minisign -S -s KEY -m {}", self.directory.join(SUMS).display()))?)
    }
}

impl Verify {
    fn run(self, given: Paths) -> Result<(), Failure> {
        // It has no flag to be quiet: a sandbox that holds in part is said.
        Paths { is_quiet: false, ..given }.enter()?;
        let (size, comment) = verify(&self.directory, &self.key)?;
        console::say(format!("signed  {}", console::plain(&comment)))?;
        Ok(console::say(format!("intact  {}", described(&self.directory, size)))?)
    }
}

fn described(directory: &Path, Size { files, bytes }: Size) -> String {
    let (files, megabytes) = (count(files, "file"), bytes as f64 / 1e6);
    format!("{}: {files}, {megabytes:.1} MB", directory.display())
}
