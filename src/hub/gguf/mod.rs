//! GGUF files, as llama.cpp keeps models in them: made into a directory of Hugging Face's layout, which is loaded like any other.
//!
//! `header` reads metadata and places of tensors; `config`, `tokenizer` and `weights` make the files of the directory of them; `import` puts
//! these together. What llama.cpp's converter has changed is undone: the order of rows of Llama's queries and keys, the 1 that Gemma's norms
//! got. What the format does not say, or this program cannot run, is refused by name.

mod config;
mod error;
mod header;
mod import;
mod metadata;
mod rope;
#[cfg(test)]
mod tests;
mod tokenizer;
mod weights;

pub use error::GgufError;
pub use header::Gguf;
use header::Tensor;
pub use import::Import;
