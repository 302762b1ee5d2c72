//! Model cards: what is known of a model before its files are there, `models/NAME.toml` embedded in the binary.

use std::sync::LazyLock;

use std::path::Path;

use serde::Deserialize;

use super::HubError;
use super::provenance::origin;
use crate::encoder::{EncoderCard, KnownModel};

// `MODELS`: every file of `models/` by its name, in the order of the names.
include!(concat!(env!("OUT_DIR"), "/models.rs"));

// A card that does not parse cannot ship: the first test below parses every one.
#[expect(clippy::disallowed_methods, reason = "they are of this program")]
static CARDS: LazyLock<Vec<Card>> = LazyLock::new(|| {
    let cards = MODELS.iter();
    let mut cards: Vec<Card> =
        cards.filter_map(|(_, source)| toml::from_str(source).ok()).collect();
    // Files are sorted with their extension: `qwen3-4b-2507.toml` before `qwen3-4b.toml`.
    cards.sort_by(|one, other| one.name.cmp(&other.name));
    cards
});

/// What a model is for, and so which of its repository's files are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A language model that a panel can be made of: the usual files of a checkpoint, whatever the card lists.
    #[default]
    Decoder,
    /// A model that reads text and writes none, for metrics: the files that the card lists, and no others.
    Encoder,
}

/// One model: `models/NAME.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// What a panel calls the model.
    pub name: String,
    #[serde(default)]
    pub kind: Kind,
    /// The hub id, `org/name`.
    pub repository: String,
    /// The commit that the files and sums belong to; `main` where none is known, and then there are no sums.
    pub revision: String,
    /// Whether the hub gives the files only to accounts that accepted the licence.
    pub gated: bool,
    /// The template's `enable_thinking` where a run does not say; absent where the template has no such switch.
    pub thinking: Option<bool>,
    pub licence: Licence,
    /// How texts become vectors, or pairs scores; of encoders for retrieval.
    pub encoder: Option<EncoderCard>,
    /// Every file that the model is run from.
    pub files: Vec<CardFile>,
}

/// A model's or dataset's licence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    pub name: String,
    /// The licence's text.
    pub url: String,
    /// The page on which a gated model's licence is accepted.
    pub accept: Option<String>,
    /// The text that says what a model may be used for, where the licence refers to another.
    pub policy: Option<String>,
    /// A line that has to travel with copies of the model.
    pub notice: Option<String>,
    /// Words that have to be shown where the model is used.
    pub shown: Option<String>,
}

/// One file of a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardFile {
    /// Relative to the repository.
    pub name: String,
    /// Absent where it is not known.
    pub size_bytes: Option<u64>,
    /// 64 hexadecimal digits; absent where the sum is not known.
    pub sha256: Option<String>,
    /// A file that is used where the repository or the folder lacks this one: of an encoder's weights, safetensors or
    /// PyTorch's pickle.
    pub instead: Option<String>,
}

impl CardFile {
    /// The accepted names, the preferred one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.instead.as_deref())
    }
}

impl Card {
    /// Every card, in the order of their names.
    pub fn all() -> &'static [Self] {
        &CARDS
    }

    /// The card of this name or hub id.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|card| card.name == name || card.repository == name)
    }

    /// The card of what lies in a directory: by where it is from, or its own name.
    ///
    /// # Errors
    /// A provenance that cannot be read.
    pub fn of_directory(directory: &Path) -> Result<Option<&'static Self>, HubError> {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let id = origin(directory)?.map_or_else(|| name.into_owned(), |(id, _)| id);
        Ok(Self::find(&id))
    }

    /// What an encoder is opened by.
    pub fn known(&'static self) -> KnownModel {
        KnownModel { name: &self.name, encoder: self.encoder.as_ref() }
    }

    pub fn file(&self, name: &str) -> Option<&CardFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// All files together; `None` where the size of one is not known.
    pub fn size_bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_parses_and_is_found_by_name_and_by_hub_id() {
        for (file, source) in MODELS {
            let card: Card = toml::from_str(source).unwrap();
            assert_eq!(*file, format!("{}.toml", card.name));
            assert_eq!(Card::find(&card.name).unwrap().repository, card.repository);
            assert_eq!(Card::find(&card.repository).unwrap().name, card.name);
        }
        assert_eq!(Card::all().len(), MODELS.len());
        assert!(Card::all().is_sorted_by_key(|card| &card.name));
        assert!(Card::find("gemma3").is_none());
    }

    #[test]
    fn pins_and_sums_are_whole() {
        let is_hex = |text: &str, length| {
            text.len() == length
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        for card in Card::all() {
            let is_pinned = is_hex(&card.revision, 40);
            let has_sums = card.files.iter().any(|file| file.sha256.is_some());
            assert!(is_pinned || (card.revision == "main" && !has_sums), "{}", card.name);
            assert_eq!(card.gated, card.licence.accept.is_some(), "{}", card.name);
            assert_eq!(card.gated, card.licence.notice.is_some(), "{}", card.name);
            assert_eq!(card.gated, card.licence.policy.is_some(), "{}", card.name);
            for file in &card.files {
                assert!(file.size_bytes != Some(0), "{}", file.name);
                assert!(file.sha256.iter().all(|sum| is_hex(sum, 64)), "{}", file.name);
            }
        }
    }

    #[test]
    fn a_directory_is_known_by_its_provenance_its_place_in_the_cache_or_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let found = |path: &str| {
            let path = folder.path().join(path);
            fs_err::create_dir_all(&path).unwrap();
            Card::of_directory(&path).unwrap().map(|card| card.name.as_str())
        };
        assert_eq!(found("encoder"), None);
        assert_eq!(found("pubmedbert-matryoshka"), Some("pubmedbert-matryoshka"));
        let snapshot = format!("models--ncbi--MedCPT-Cross-Encoder/snapshots/{}", "0".repeat(40));
        assert_eq!(found(&snapshot), Some("medcpt-cross-encoder"));
        let provenance =
            "repository = \"ncbi/MedCPT-Article-Encoder\"\nrevision = \"0\"\n[sha256]\n";
        for path in ["encoder", "pubmedbert-matryoshka"] {
            fs_err::write(folder.path().join(path).join("provenance.toml"), provenance).unwrap();
            assert_eq!(found(path), Some("medcpt-article-encoder"));
        }
    }

    fn has(card: &Card, name: &str) -> bool {
        card.files.iter().any(|file| file.name == name)
    }

    #[test]
    fn decoders_have_shards_and_a_tokenizer() {
        for card in Card::all().iter().filter(|card| card.kind == Kind::Decoder) {
            assert!(!card.revision.is_empty() && card.revision != "main", "{}", card.name);
            let weights: Vec<&str> = card
                .files
                .iter()
                .map(|file| file.name.as_str())
                .filter(|name| name.ends_with(".safetensors"))
                .collect();
            // One file, or shards and their index.
            let is_single = weights == ["model.safetensors"];
            assert_ne!(is_single, has(card, "model.safetensors.index.json"), "{}", card.name);
            for (position, name) in weights.iter().enumerate().filter(|_| !is_single) {
                let numbers = format!("-{:05}-of-{:05}.safetensors", position + 1, weights.len());
                // Qwen 3.5's shards keep the end of the name that they are parts of.
                let known = ["model", "model.safetensors"].map(|whole| whole.to_owned() + &numbers);
                assert!(known.iter().any(|known| known == name), "{name}");
            }
            for required in ["config.json", "tokenizer.json"] {
                assert!(has(card, required), "{}", card.name);
            }
            // Of Qwen 3.5 none is published.
            let is_said = has(card, "generation_config.json");
            assert_ne!(is_said, card.name.starts_with("qwen3.5"), "{}", card.name);
            // What is summed is weighed too.
            let is_weighed = |file: &CardFile| file.size_bytes.is_some() || file.sha256.is_none();
            assert!(card.files.iter().all(is_weighed), "{}", card.name);
            assert!(card.files.iter().all(|file| file.instead.is_none()));
        }
    }

    #[test]
    fn encoders_have_a_tokenizer_and_weights_in_either_form() {
        let forms = ["model.safetensors", "pytorch_model.bin"];
        let encoders: Vec<_> =
            Card::all().iter().filter(|card| card.kind == Kind::Encoder).collect();
        assert_eq!(encoders.len(), 10);
        for card in encoders {
            let tokenizers: [&[&str]; 3] =
                [&["tokenizer.json"], &["vocab.json", "merges.txt"], &["spm.model"]];
            let whole = |names: &&[&str]| names.iter().all(|name| has(card, name));
            assert_eq!(tokenizers.iter().filter(|names| whole(names)).count(), 1);
            assert!(has(card, "config.json"), "{}", card.name);
            let weights = card.files.iter().filter(|file| file.instead.is_some());
            let names: Vec<Vec<&str>> = weights.map(|file| file.names().collect()).collect();
            let in_either =
                matches!(&names[..], [names] if forms.iter().all(|form| names.contains(form)));
            assert!(in_either, "{}", card.name);
        }
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_the_sums_agree_with_published_files_at_hand() {
        let data = std::env::var_os("WARDROUND_DATA").map(std::path::PathBuf::from).unwrap();
        // The shared folder keeps these as published; its other files were rebuilt.
        let published = [
            ("qwen3-4b", "config.json", "configs/qwen3-4b.config.json"),
            ("qwen3-4b", "tokenizer_config.json", "tokenizers/qwen3/tokenizer_config.json"),
            ("llama3.2-3b", "tokenizer_config.json", "tokenizers/llama3.2/tokenizer_config.json"),
            ("gemma3-4b", "chat_template.json", "tokenizers/gemma3/chat_template.json"),
        ];
        for (name, file, path) in published {
            let actual = super::super::sha256_file(&data.join(path)).unwrap();
            assert_eq!(
                Card::find(name).unwrap().file(file).unwrap().sha256.as_deref(),
                Some(actual.as_str()),
                "{name} {file}"
            );
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let (_, source) = MODELS.iter().find(|(file, _)| *file == "qwen3-4b.toml").unwrap();
        let source = source.replace("gated = false", "gated = false\ngate = true");
        let error = toml::from_str::<Card>(&source).unwrap_err();
        assert!(error.to_string().contains("gate"), "{error}");
    }
}
