//! `corpus`: builds, lists, checks and searches the corpora that systems search.

mod build;
mod search;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::corpus::store::manifest::BuiltSource;
use crate::corpus::{Corpus, verify};

#[derive(Debug, Subcommand)]
pub enum CorpusVerb {
    /// Build a corpus: read its sources, split them, embed the chunks
    Build(Box<build::Build>),
    /// Show what a corpus holds: documents, chunks, licences by source
    Info(Info),
    /// Search a corpus
    Search(Box<search::Search>),
    /// Check a corpus against its recorded SHA-256 checksums
    Verify(Verify),
}

#[derive(Debug, Args)]
pub struct Info {
    /// Directory of a corpus
    directory: PathBuf,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// Directory of a corpus
    directory: PathBuf,
}

run_each!(CorpusVerb: Build, Info, Search, Verify);

impl Info {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let corpus = Corpus::open(&self.directory)?;
        let manifest = corpus.manifest();
        console::say(format!(
            "{:24} {:>10} {:>10} {:>9}  licence",
            "source", "documents", "chunks", "MB"
        ))?;
        let line = |name: &str, source: &BuiltSource, licence: &str| {
            let megabytes = source.text_bytes as f64 / 1e6;
            format!(
                "{name:24} {:>10} {:>10} {megabytes:>9.1}  {licence}",
                source.documents, source.chunks
            )
        };
        for source in &manifest.sources {
            let shared =
                if source.description.redistribute { "" } else { " (not to be handed on)" };
            let licence = format!("{}{shared}", source.description.licence);
            console::say(line(&source.description.label, source, &licence))?;
            if source.empty > 0 {
                console::note(format!(
                    "note: {}: {} documents without text were left out; build.jsonl lists them",
                    source.description.label, source.empty
                ));
            }
        }
        let bytes: u64 = manifest.files.iter().map(|file| file.size_bytes).sum();
        let total = format!(
            "{:24} {:>10} {:>10} {:>9.1}",
            "all",
            manifest.documents,
            manifest.chunks,
            bytes as f64 / 1e6
        );
        console::say(format!("{total}  with vectors"))?;
        let name = manifest.encoder.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        console::say(format!("encoder {name}, {} dimensions in f16", manifest.vectors.dims))?;
        Ok(console::say(format!("id {}", corpus.id()))?)
    }
}

impl Verify {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let mut wrong = 0;
        for check in verify::verify(&self.directory)? {
            wrong += usize::from(check.problem.is_some());
            let state = check.problem.as_deref().unwrap_or("ok");
            console::say(format!("{:16} {state}", check.name))?;
        }
        match wrong {
            0 => Ok(()),
            _ => Err(Failure::mismatch(format!("{} is damaged", self.directory.display()))),
        }
    }
}
