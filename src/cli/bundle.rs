//! `bundle`: models, data and the program as one folder for an air gap, and whether it is as it was signed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::HubFlags;
use super::sandboxed::Paths;
use super::summary::count;
use crate::bundle::create::{Request, create};
use crate::bundle::verify::verify;
use crate::bundle::{Bundle, CONTENTS, SUMS};
use crate::cli::exit::Failure;
use crate::console;
use crate::hub::PROVENANCE;

#[derive(Debug, Subcommand)]
pub enum BundleVerb {
    /// Make a bundle, and print the command that signs it
    Create(Box<Request>),
    /// Check a bundle's signature and the checksums of all its files
    Verify(Verify),
}

run_each!(BundleVerb: Create, Verify);

#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle
    directory: PathBuf,
    /// The public key of minisign that must have signed it: a file that came by another way
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl Request {
    fn run(mut self, given: Paths) -> Result<(), Failure> {
        // Which dataset a file is of is told by the record of the folder that it was fetched into.
        let data = self.data.iter().filter_map(|path| std::path::absolute(path).ok());
        let records = data.flat_map(|path| {
            let folders = path.ancestors().map(|folder| folder.join(PROVENANCE));
            Vec::from_iter(folders)
        });
        let given = given.read(records).read([std::env::current_exe()?]);
        given.write_beside(&self.out)?.enter()?;
        if self.binaries.is_empty() {
            self.binaries.push(std::env::current_exe()?);
        }
        let bundle = create(&self, &HubFlags::default().options(true)?)?;
        console::note(format!("{}; {CONTENTS} says what is in it", described(&bundle)));
        console::note("It is not signed yet. Sign it where the key is:");
        Ok(console::say(format!("minisign -S -s KEY -m {}", self.out.join(SUMS).display()))?)
    }
}

impl Verify {
    fn run(self, given: Paths) -> Result<(), Failure> {
        // It has no flag to be quiet: a sandbox that holds in part is said.
        Paths { is_quiet: false, ..given }.enter()?;
        let (bundle, comment) = verify(&self.directory, &self.key)?;
        console::say(format!("signed  {}", console::plain(&comment)))?;
        Ok(console::say(format!("intact  {}", described(&bundle)))?)
    }
}

fn described(bundle: &Bundle) -> String {
    let (files, megabytes) = (count(bundle.files, "file"), bundle.bytes as f64 / 1e6);
    format!("{}: {files}, {megabytes:.1} MB", console::plain(&bundle.name))
}
