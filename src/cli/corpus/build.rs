//! `corpus build`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use super::super::options::{QuietFlag, hidden, model_folder};
use super::super::progress::PAUSE;
use super::super::sandboxed::{Paths, folder_of};
use crate::cli::exit::Failure;
use crate::console;
use crate::corpus::build::{self as builder, BATCH, BuildOptions};
use crate::corpus::embed::encoder_options;
use crate::corpus::{Corpus, Description};
use crate::encoder::{Encoder, EncoderOptions};
use crate::experiment::hardware::Compute;
use crate::record::count;

// An encoder keeps no keys and values.
#[derive(Debug, Args)]
#[command(mut_args(hidden(["kv_dtype"])))]
pub struct Build {
    /// Description: medquad, clinicalcorp-open or another name, or a file
    #[arg(value_name = "NAME")]
    description: String,
    /// New or empty directory to write to; a build that was interrupted there goes on
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Directory of the sources' files [default: that of the description's file]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The sentence encoder: its directory, or its card's name
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR|CARD")]
    encoder: PathBuf,
    /// Maximum number of tokens the encoder reads of a text [default: what its card says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    document_tokens: Option<u32>,
    /// Vector dimensions: the first D of the encoder's, where it was trained for truncation (Matryoshka) [default: all]
    #[arg(long, value_name = "D")]
    dims: Option<usize>,
    /// Dimensions of the vectors that are searched, beside the longer ones for --rerank embedding [default: those of --dims]
    #[arg(long, value_name = "D")]
    search_dims: Option<usize>,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    progress: QuietFlag,
}

impl Build {
    /// Where the inputs are: by default beside the description.
    fn data(&self) -> Option<PathBuf> {
        let own = Some(Path::new(&self.description)).filter(|file| file.is_file());
        self.data_dir.clone().or(own.map(folder_of))
    }

    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.read(self.data()).write(&self.out)?.enter()?;
        self.progress.note(format!(
            "loading {}, then reading the sources of {}",
            self.encoder.display(),
            self.description
        ));
        let encoder_options = self.encoder_options()?;
        let encoder = Encoder::open(&encoder_options)?;
        let data = self.data().ok_or_else(|| {
            Failure::usage(
                "the directory of the sources' files is not known",
                "name it with --data-dir DIR",
            )
        })?;
        let options = BuildOptions {
            description: Description::open(&self.description)?,
            data,
            out: self.out.clone(),
            encoder: encoder_options.directory,
            search_dims: self.search_dims,
        };
        let mut reported = Instant::now();
        builder::Build::begin(&options, &encoder)?.run(&encoder, BATCH, &mut |chunks, all| {
            if reported.elapsed() >= PAUSE {
                self.progress.note(format!("{chunks} of {all} chunks embedded"));
                reported = Instant::now();
            }
            Ok(())
        })?;
        let corpus = Corpus::open(&options.out)?;
        let manifest = corpus.manifest();
        let documents = count(manifest.documents, "document");
        self.progress.note(format!("{documents}, {}", count(manifest.chunks, "chunk")));
        Ok(console::say(&corpus.file.id)?)
    }

    fn encoder_options(&self) -> Result<EncoderOptions, Failure> {
        let folder = model_folder(&self.encoder)?;
        let mut options = encoder_options(&folder, self.compute.on.one_device()?)?;
        options.dims = self.dims;
        options.max_tokens = self.document_tokens.map(|tokens| tokens as usize);
        options.dtype = self.compute.dtype;
        options.quantisation = self.compute.quant;
        Ok(options)
    }
}
