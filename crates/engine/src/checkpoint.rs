//! The files of a checkpoint's directory: complete, or an error that names what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::fault::faults;
use crate::outside;

/// What a model is: its family and sizes.
pub const CONFIG: &str = "config.json";
/// Sampling defaults and end-of-turn tokens.
pub const GENERATION_CONFIG: &str = "generation_config.json";
/// Text to token ids.
pub const TOKENIZER: &str = "tokenizer.json";
/// The names of special tokens, and in some models the chat template.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
/// The chat template, in newer models.
pub const CHAT_TEMPLATE_JINJA: &str = "chat_template.jinja";
/// The chat template, in some older ones.
pub const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
/// All weights in one file.
pub const SINGLE: &str = "model.safetensors";
/// Which shard holds which tensor.
pub const INDEX: &str = "model.safetensors.index.json";

/// The paths of a checkpoint's files, all inside its directory.
#[derive(Clone, Debug, Default)]
pub struct CheckpointFiles {
    pub config: PathBuf,
    pub generation_config: Option<PathBuf>,
    /// A directory that is not from the hub may lack it: logits from token ids need no tokenizer.
    pub tokenizer: Option<PathBuf>,
    /// What else a model is of: [`TOKENIZER_CONFIG`], the chat template, the [`INDEX`] of shards; of an encoder what its card lists.
    pub others: Vec<PathBuf>,
    /// The one file, or every shard in the order of their names; safetensors, of an encoder also PyTorch's pickle.
    pub weights: Vec<PathBuf>,
}

faults! {
    /// Why a directory holds no checkpoint.
    #[derive(Debug, Error)]
    pub enum FilesError {
        #[error("the checkpoint in {} lacks {file}", directory.display())]
        Incomplete { directory: PathBuf, file: String } => Artefact,
            "copy or fetch the whole of the model's repository";
        #[error(
            "the checkpoint in {} has no weights: neither model.safetensors nor model.safetensors.index.json is there",
            directory.display()
        )]
        NoWeights { directory: PathBuf } => Artefact,
            "copy or fetch the whole of the model's repository";
        #[error("{} cannot be read: {reason}", path.display())]
        BadIndex { path: PathBuf, reason: String } => Artefact;
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame(), error.hint();
    }
}

impl CheckpointFiles {
    /// Finds the files of `directory`. Where both forms of weights are there, the single file wins.
    pub fn find(directory: &Path) -> Result<Self, FilesError> {
        let optional = |name: &str| optional(directory, name);
        let config = required(directory, CONFIG)?;
        let (index, weights) = match (optional(SINGLE), optional(INDEX)) {
            (Some(single), _) => (None, vec![single]),
            (None, Some(index)) => {
                let shards = shard_names(&index)?;
                let shards = shards.iter().map(|name| required(directory, name));
                (Some(index), shards.collect::<Result<_, _>>()?)
            }
            (None, None) => {
                return Err(FilesError::NoWeights { directory: directory.to_owned() });
            }
        };
        let named = [TOKENIZER_CONFIG, CHAT_TEMPLATE_JINJA, CHAT_TEMPLATE_JSON];
        Ok(Self {
            config,
            generation_config: optional(GENERATION_CONFIG),
            tokenizer: optional(TOKENIZER),
            others: named.into_iter().filter_map(optional).chain(index).collect(),
            weights,
        })
    }
}

fn optional(directory: &Path, name: &str) -> Option<PathBuf> {
    Some(directory.join(name)).filter(|path| path.is_file())
}

pub fn required(directory: &Path, name: &str) -> Result<PathBuf, FilesError> {
    optional(directory, name).ok_or_else(|| incomplete(directory, name))
}

pub fn incomplete(directory: &Path, file: &str) -> FilesError {
    FilesError::Incomplete { directory: directory.to_owned(), file: file.to_owned() }
}

/// The shards that an index names, sorted, each once.
///
/// # Errors
/// The index cannot be read, names no shard, or names one outside its directory.
pub fn shard_names(index: &Path) -> Result<Vec<String>, FilesError> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let bad = |reason: String| FilesError::BadIndex { path: index.to_owned(), reason };
    let parsed: Index = outside::json(index)?.map_err(|error| bad(error.to_string()))?;
    let names: BTreeSet<String> = parsed.weight_map.into_values().collect();
    if names.is_empty() {
        return Err(bad("its weight_map is empty".to_owned()));
    }
    match names.iter().find(|name| !outside::is_below(name)) {
        Some(name) => Err(bad(format!("the shard `{name}` lies outside its directory"))),
        None => Ok(names.into_iter().collect()),
    }
}

/// Has `write` fill a directory beside `directory`, which gets its name in the end: all of it is written, or nothing. What a kill
/// leaves goes with the next attempt.
///
/// # Errors
/// What `write` says; something that stands there, but for an empty directory; a directory that cannot be made or renamed; another
/// process that writes it.
pub fn write_whole<E: From<io::Error>>(
    directory: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let is_occupied = match fs_err::read_dir(directory) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => directory.exists(),
    };
    if is_occupied {
        let problem = "exists and is not an empty directory: choose a new one";
        let problem = format!("{} {problem}", directory.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem).into());
    }
    let building = outside::partial(directory);
    fs_err::create_dir_all(&building)?;
    // Where there are no locks, as on some network file systems, the guard is forgone and not the model.
    let lock = outside::open_directory(&building)?;
    if let Ok(false) = outside::lock(&lock) {
        let busy = format!("{} is being written by another process", directory.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, busy).into());
    }
    for entry in fs_err::read_dir(&building)? {
        // A checkpoint's files lie side by side.
        fs_err::remove_file(entry?.path())?;
    }
    let written = write(&building).and_then(|()| {
        if directory.exists() {
            fs_err::remove_dir(directory)?;
        }
        Ok(fs_err::rename(&building, directory)?)
    });
    if written.is_err() {
        // The error at hand is the one to tell.
        let _ = fs_err::remove_dir_all(&building);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{Blame, Diagnosis};

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        directory
    }

    const SHARDED: &str = r#"{"metadata": {}, "weight_map": {"a": "two.safetensors", "b": "sub/one.safetensors", "c": "two.safetensors"}}"#;

    #[test]
    fn shards_come_from_the_index_sorted_and_once() {
        let directory = directory(&[
            (CONFIG, "{}"),
            (INDEX, SHARDED),
            ("two.safetensors", ""),
            ("sub/one.safetensors", ""),
        ]);
        let files = CheckpointFiles::find(directory.path()).unwrap();
        let weights = [
            directory.path().join("sub/one.safetensors"),
            directory.path().join("two.safetensors"),
        ];
        assert_eq!(files.weights, weights);
        assert_eq!(files.others, [directory.path().join(INDEX)]);
        assert_eq!(files.tokenizer, None);
    }

    #[test]
    fn the_single_file_wins_over_an_index() {
        let directory = directory(&[(CONFIG, "{}"), (INDEX, SHARDED), (SINGLE, "")]);
        let files = CheckpointFiles::find(directory.path()).unwrap();
        assert_eq!(files.weights, [directory.path().join(SINGLE)]);
        assert!(files.others.is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        let cases: [(&[(&str, &str)], &str); 3] = [
            (&[(SINGLE, "")], CONFIG),
            (&[(CONFIG, "{}")], SINGLE),
            (&[(CONFIG, "{}"), (INDEX, SHARDED), ("two.safetensors", "")], "sub/one.safetensors"),
        ];
        for (files, missing) in cases {
            let directory = directory(files);
            let error = CheckpointFiles::find(directory.path()).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
            assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
            assert_eq!(error.blame(), Blame::Artefact);
        }
    }

    #[test]
    fn an_index_cannot_lead_outside() {
        for name in ["../a.safetensors", "/etc/passwd", "a/../../b", ""] {
            let index = format!(r#"{{"weight_map": {{"x": "{name}"}}}}"#);
            let directory = directory(&[(CONFIG, "{}"), (INDEX, &index)]);
            let error = CheckpointFiles::find(directory.path()).unwrap_err();
            assert!(error.to_string().contains("lies outside its directory"), "{name}: {error}");
        }
    }

    #[test]
    fn what_a_kill_left_of_a_model_goes_and_two_do_not_write_one() {
        let folder = directory(&[(".llama.partial/model.safetensors", "half")]);
        let (out, partial) = (folder.path().join("llama"), folder.path().join(".llama.partial"));
        let write = |to: &Path| fs_err::write(to.join(CONFIG), "{}");
        let other = outside::open_directory(&partial).unwrap();
        other.file().try_lock().unwrap();
        let error = write_whole(&out, write).unwrap_err();
        assert!(error.to_string().ends_with("llama is being written by another process"));
        assert_eq!(error.blame(), Blame::Usage);
        assert!(partial.join(SINGLE).exists());
        drop(other);
        write_whole(&out, write).unwrap();
        assert_eq!(fs_err::read_dir(&out).unwrap().count(), 1);
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_index_that_is_none_is_refused() {
        for index in ["", "[]", r#"{"weight_map": {}}"#, r#"{"weight_map": {"x": 1}}"#] {
            let directory = directory(&[(CONFIG, "{}"), (INDEX, index)]);
            let error = CheckpointFiles::find(directory.path()).unwrap_err();
            assert!(matches!(error, FilesError::BadIndex { .. }), "{index}: {error}");
        }
    }
}
