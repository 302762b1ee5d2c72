//! A checkpoint: one directory that holds everything a model is run from, complete or refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::{Card, HubError, Kind};
use crate::sandbox::outside::{self, JsonError};

pub const CONFIG: &str = "config.json";
pub const GENERATION_CONFIG: &str = "generation_config.json";
pub const TOKENIZER: &str = "tokenizer.json";
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
pub const CHAT_TEMPLATE_JINJA: &str = "chat_template.jinja";
pub const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
pub const SINGLE: &str = "model.safetensors";
pub const INDEX: &str = "model.safetensors.index.json";

/// A checkpoint whose files were all there when it was found.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The card's name, the hub id, or the directory's last component.
    pub name: String,
    pub directory: PathBuf,
    /// The hub id, where the files came from the hub or its cache.
    pub repository: Option<String>,
    /// The commit that the files belong to, where they came from the hub or its cache.
    pub revision: Option<String>,
    pub card: Option<&'static Card>,
    pub files: CheckpointFiles,
}

/// The paths of a checkpoint's files, all inside its directory.
#[derive(Clone, Debug, Default)]
pub struct CheckpointFiles {
    pub config: PathBuf,
    pub generation_config: Option<PathBuf>,
    /// A directory that is not from the hub may lack it: logits from token ids need no tokenizer.
    pub tokenizer: Option<PathBuf>,
    pub tokenizer_config: Option<PathBuf>,
    pub chat_template_jinja: Option<PathBuf>,
    pub chat_template_json: Option<PathBuf>,
    /// Present where the weights are sharded.
    pub index: Option<PathBuf>,
    /// The one file, or every shard in the order of their names; safetensors, of an encoder also PyTorch's pickle.
    pub weights: Vec<PathBuf>,
    /// What else an encoder's card lists, in its order.
    pub others: Vec<PathBuf>,
}

impl Checkpoint {
    /// The tokenizer's file.
    ///
    /// # Errors
    /// [`HubError::Incomplete`] where the directory has none.
    pub fn tokenizer(&self) -> Result<&Path, HubError> {
        let tokenizer = self.files.tokenizer.as_deref();
        tokenizer.ok_or_else(|| incomplete(&self.directory, TOKENIZER))
    }

    /// Every file with its name relative to the directory, `/` between components; weights last.
    pub fn named_files(&self) -> Vec<(String, PathBuf)> {
        let files = &self.files;
        [
            Some(&files.config),
            files.generation_config.as_ref(),
            files.tokenizer.as_ref(),
            files.tokenizer_config.as_ref(),
            files.chat_template_jinja.as_ref(),
            files.chat_template_json.as_ref(),
            files.index.as_ref(),
        ]
        .into_iter()
        .flatten()
        .chain(&files.others)
        .map(|path| self.named(path))
        .chain(self.named_weights())
        .collect()
    }

    /// The weight files with their names, for [`super::digest_files`].
    pub fn named_weights(&self) -> Vec<(String, PathBuf)> {
        self.files.weights.iter().map(|path| self.named(path)).collect()
    }

    fn named(&self, path: &Path) -> (String, PathBuf) {
        let relative = path.strip_prefix(&self.directory).unwrap_or(path);
        let components: Vec<_> = relative
            .components()
            .map(|component| component.as_os_str().to_string_lossy())
            .collect();
        (components.join("/"), path.to_owned())
    }
}

impl CheckpointFiles {
    /// Finds the files of `directory` that a model of this card is run from; without a card, a decoder's.
    ///
    /// # Errors
    /// A file is missing, or the index of shards is damaged.
    pub fn find_for(directory: &Path, card: Option<&Card>) -> Result<Self, HubError> {
        match card {
            Some(card) if card.kind == Kind::Encoder => Self::find_listed(directory, card),
            _ => Self::find(directory),
        }
    }

    /// Finds what an encoder's card lists.
    fn find_listed(directory: &Path, card: &Card) -> Result<Self, HubError> {
        let mut files = Self { config: directory.join(CONFIG), ..Self::default() };
        for file in &card.files {
            let mut paths = file.names().map(|name| directory.join(name));
            let path = paths.find(|path| path.is_file());
            let names = || file.names().collect::<Vec<_>>().join(" or ");
            let path = path.ok_or_else(|| incomplete(directory, &names()))?;
            match file.name.as_str() {
                CONFIG => files.config = path,
                TOKENIZER => files.tokenizer = Some(path),
                TOKENIZER_CONFIG => files.tokenizer_config = Some(path),
                INDEX => {
                    for shard in shard_names(&path)? {
                        files.weights.push(required(directory, &shard)?);
                    }
                    files.index = Some(path);
                }
                name if is_weights(name) => files.weights.push(path),
                _ => files.others.push(path),
            }
        }
        Ok(files)
    }

    /// Finds the files of `directory`. Where both forms of weights are there, the single file wins.
    ///
    /// # Errors
    /// [`HubError::Incomplete`] names the first file that is missing; [`HubError::Malformed`] says
    /// what is wrong with the index.
    pub fn find(directory: &Path) -> Result<Self, HubError> {
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
                return Err(HubError::NoWeights { directory: directory.to_owned() });
            }
        };
        Ok(Self {
            config,
            generation_config: optional(GENERATION_CONFIG),
            tokenizer: optional(TOKENIZER),
            tokenizer_config: optional(TOKENIZER_CONFIG),
            chat_template_jinja: optional(CHAT_TEMPLATE_JINJA),
            chat_template_json: optional(CHAT_TEMPLATE_JSON),
            index,
            weights,
            others: Vec::new(),
        })
    }
}

fn optional(directory: &Path, name: &str) -> Option<PathBuf> {
    Some(directory.join(name)).filter(|path| path.is_file())
}

fn required(directory: &Path, name: &str) -> Result<PathBuf, HubError> {
    optional(directory, name).ok_or_else(|| incomplete(directory, name))
}

fn incomplete(directory: &Path, file: &str) -> HubError {
    HubError::Incomplete { directory: directory.to_owned(), file: file.to_owned() }
}

/// Whether a name is that of weights, in safetensors or PyTorch's pickle.
fn is_weights(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".bin")
}

/// The shards that an index names, sorted, each once.
///
/// # Errors
/// The index cannot be read, names no shard, or names one outside its directory.
pub fn shard_names(index: &Path) -> Result<Vec<String>, HubError> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let bad = |reason: String| HubError::Malformed { path: index.to_owned(), reason };
    let parsed: Index = outside::json(index).map_err(|error| match error {
        JsonError::Read(error) => error.into(),
        error => bad(error.to_string()),
    })?;
    let names: BTreeSet<String> = parsed.weight_map.into_values().collect();
    if names.is_empty() {
        return Err(bad("its weight_map is empty".to_owned()));
    }
    match names.iter().find(|name| !stays_inside(name)) {
        Some(name) => Err(bad(format!("the shard `{name}` lies outside its directory"))),
        None => Ok(names.into_iter().collect()),
    }
}

/// Whether a relative name can only lead below the directory it is joined to, on any platform.
fn stays_inside(name: &str) -> bool {
    !name.contains(['\\', ':'])
        && Path::new(name).components().next().is_some()
        && Path::new(name).components().all(|component| matches!(component, Component::Normal(_)))
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
        assert_eq!(files.index, Some(directory.path().join(INDEX)));
        assert_eq!(files.tokenizer, None);
    }

    #[test]
    fn an_encoders_index_names_its_shards() {
        let card = Card::find("qwen3-embedding-4b").unwrap();
        let texts = [(CONFIG, "{}"), (TOKENIZER, "{}"), (TOKENIZER_CONFIG, "{}"), (INDEX, SHARDED)];
        let lacking = directory(&[&texts[..], &[("two.safetensors", "")]].concat());
        let error = CheckpointFiles::find_for(lacking.path(), Some(card)).unwrap_err();
        assert!(error.to_string().contains("sub/one.safetensors"), "{error}");
        fs_err::create_dir(lacking.path().join("sub")).unwrap();
        fs_err::write(lacking.path().join("sub/one.safetensors"), "").unwrap();
        let files = CheckpointFiles::find_for(lacking.path(), Some(card)).unwrap();
        assert_eq!((files.weights.len(), files.index.is_some()), (2, true));
    }

    #[test]
    fn the_single_file_wins_over_an_index() {
        let directory = directory(&[(CONFIG, "{}"), (INDEX, SHARDED), (SINGLE, "")]);
        let files = CheckpointFiles::find(directory.path()).unwrap();
        assert_eq!(files.weights, [directory.path().join(SINGLE)]);
        assert_eq!(files.index, None);
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
        for name in
            ["../a.safetensors", "/etc/passwd", "a/../../b", "", ".", "./a", r"..\\a", "C:a"]
        {
            let index = format!(r#"{{"weight_map": {{"x": "{name}"}}}}"#);
            let directory = directory(&[(CONFIG, "{}"), (INDEX, &index)]);
            let error = CheckpointFiles::find(directory.path()).unwrap_err();
            assert!(error.to_string().contains("lies outside its directory"), "{name}: {error}");
        }
    }

    #[test]
    fn an_index_that_is_none_is_refused() {
        for index in ["", "[]", r#"{"weight_map": {}}"#, r#"{"weight_map": {"x": 1}}"#] {
            let directory = directory(&[(CONFIG, "{}"), (INDEX, index)]);
            let error = CheckpointFiles::find(directory.path()).unwrap_err();
            assert!(matches!(error, HubError::Malformed { .. }), "{index}: {error}");
        }
    }
}
