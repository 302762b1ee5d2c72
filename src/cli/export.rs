//! `export`: writes a finished run in a format of others.

use std::path::PathBuf;

use clap::Args;

use crate::analysis::export::{ExportedFile, Form};
use crate::analysis::results;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::error::RunError;
use crate::experiment::whole_file;

#[derive(Debug, Args)]
pub struct Export {
    /// Run directory
    directory: PathBuf,
    /// Format
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    form: Form,
    /// Directory to write to; what it holds already stays
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Export {
    pub fn run(self) -> Result<(), Failure> {
        let (verified, note) = results::verify(&self.directory, None)?;
        if let Some(note) = note {
            console::note(format!("note: {note}"));
        }
        let Some(results) = &verified.results else {
            return Err(RunError::NoResults { path: self.directory }.into());
        };
        for ExportedFile { path, bytes } in self.form.files(&verified.contents, results)? {
            let path = self.out.join(path);
            if let Some(folder) = path.parent() {
                fs_err::create_dir_all(folder)?;
            }
            whole_file::write_private(&path, &bytes)?;
            console::say(path.display().to_string())?;
        }
        Ok(())
    }
}
