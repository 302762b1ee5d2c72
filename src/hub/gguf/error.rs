//! Why a GGUF file is not made into a model's directory.

use std::io;
use std::path::PathBuf;

use crate::chat::ChatError;
use crate::fault::faults;
use crate::model::ConfigError;
use crate::tokenizer::TokenizerError;

faults! {
    /// Why a GGUF file is not made into a model's directory.
    #[derive(Debug, thiserror::Error)]
    pub enum GgufError {
        #[error("{} is not a sound GGUF file: byte {at}: {problem}", path.display())]
        Broken { path: PathBuf, at: u64, problem: String } => Artefact,
            "the file is damaged or cut short: copy or fetch it again";
        #[error("{}: {problem}", path.display())]
        Refused { path: PathBuf, problem: String, remedy: String } => Artefact, remedy.clone();
        #[error("{} exists and is not an empty directory", path.display())]
        Exists { path: PathBuf } => Usage, "choose a new directory";
        #[error("the tokenizer in {} is not this model's: {problem}", directory.display())]
        Tokenizer { directory: PathBuf, problem: String } => Usage,
            "take the tokenizer of the repository that the file was converted from";
        #[error(transparent)]
        Config(error: #[from] ConfigError) => error.blame(),
            "only models that run here are imported: Llama, Gemma 3 and Qwen 3 as published";
        #[error(transparent)]
        Unreadable(error: #[from] TokenizerError) => error.blame(), error.hint();
        #[error(transparent)]
        Template(error: #[from] ChatError) => error.blame(), error.hint();
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame(), error.hint();
    }
}
