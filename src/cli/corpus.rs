//! `corpus`: builds, checks, shows and searches the corpora that systems search.

mod build;
mod search;

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::corpus::description::Source;
use crate::corpus::store::manifest::Manifest;
use crate::corpus::{Corpus, verify};

#[derive(Debug, Subcommand)]
pub enum CorpusVerb {
    /// Build a corpus: read its sources, split them, embed the chunks
    Build(Box<build::Build>),
    /// Search a corpus; print a JSON object for each query
    Search(Box<search::Search>),
    /// Check a corpus against its recorded SHA-256 checksums, and show what it holds
    Verify(Verify),
}

#[derive(Debug, Args)]
pub struct Verify {
    /// Directory of a corpus
    directory: PathBuf,
}

run_each!(CorpusVerb: Build, Search, Verify);

impl Verify {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let mut wrong = 0;
        for (name, problem) in verify::verify(&self.directory)? {
            wrong += usize::from(problem.is_some());
            console::say(format!("{name:16} {}", problem.as_deref().unwrap_or("ok")))?;
        }
        match wrong {
            0 => show(&Corpus::open(&self.directory)?),
            _ => Err(Failure::mismatch(format!("{} is damaged", self.directory.display()))),
        }
    }
}

/// Prints documents, chunks and licence of each source, the encoder and the id.
fn show(corpus: &Corpus) -> Result<(), Failure> {
    let Manifest { sources, documents, chunks, files, encoder, vectors, .. } = corpus.manifest();
    let line = |name: &str, documents: &dyn Display, chunks: &dyn Display, mb: &str, more: &str| {
        console::say(format!("{name:24} {documents:>10} {chunks:>10} {mb:>9}  {more}"))
    };
    line("source", &"documents", &"chunks", "MB", "licence")?;
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    for source in sources {
        let Source { label, licence, redistribute, .. } = &source.description;
        let shared = if *redistribute { "" } else { " (not to be handed on)" };
        let empty = match source.empty {
            0 => String::new(),
            empty => format!("; {empty} documents without text were left out"),
        };
        let more = format!("{licence}{shared}{empty}");
        line(label, &source.documents, &source.chunks, &megabytes(source.text_bytes), &more)?;
    }
    let bytes = files.iter().map(|file| file.size_bytes).sum();
    line("all", documents, chunks, &megabytes(bytes), "with vectors")?;
    let name = encoder.get("name").and_then(toml::Value::as_str).unwrap_or_default();
    console::say(format!("encoder {name}, {} dimensions", vectors.dims))?;
    Ok(console::say(format!("id {}", corpus.file.id))?)
}
