//! `corpus`: builds, checks, shows and searches the corpora that systems search.

mod build;
mod search;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::analysis::table::{Cell, Table};
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::cli::terminal;
use crate::console;
use crate::corpus::Corpus;
use crate::corpus::description::Source;
use crate::corpus::store::manifest::{BuiltSource, Manifest};

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
        for (name, problem) in Corpus::verify(&self.directory)? {
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
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let licence = |source: &BuiltSource| {
        let Source { licence, redistribute, .. } = &source.description;
        format!("{licence}{}", if *redistribute { "" } else { " (not to be handed on)" })
    };
    let bytes = files.iter().map(|file| file.size_bytes).sum();
    let name = encoder.get("name").and_then(toml::Value::as_str).unwrap_or_default();
    let table = Table::of("sources", "Sources", sources)
        .text("source", |source| &source.description.label)
        .number("documents", |source| source.documents as usize)
        .number("left out, empty", |source| source.empty as usize)
        .number("chunks", |source| source.chunks as usize)
        .number("MB", |source| Cell::Number(megabytes(source.text_bytes), 1))
        .text("licence", licence)
        .note(format!(
            "In all {documents} documents, {chunks} chunks, {:.1} MB with vectors; encoder {name}, {} dimensions.",
            megabytes(bytes),
            vectors.dims
        ))
        .note(format!("id {}", corpus.file.id));
    terminal::show(&[table.build()])
}
