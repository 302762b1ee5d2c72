//! Cards of datasets: where the published files lie, what they are and where they go, `datasets/NAME.toml` embedded in the
//! binary.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::{HubError, Licence};
use crate::data::Format;
use crate::outside;

// `DATASETS`: every file of `datasets/` by its name, in the order of the names.
include!(concat!(env!("OUT_DIR"), "/datasets.rs"));

// A card that does not parse cannot ship: a test below parses every one.
static CARDS: LazyLock<Vec<DatasetCard>> = LazyLock::new(|| {
    let cards = DATASETS.iter();
    cards.filter_map(|(name, text)| DatasetCard::parse(text, Path::new(name)).ok()).collect()
});

/// One dataset: `datasets/NAME.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetCard {
    pub name: String,
    pub title: String,
    /// How many questions or notes of what kind.
    pub records: String,
    /// What a user should know of it.
    pub note: Option<String>,
    /// The publication that asks to be cited.
    pub citation: String,
    pub licence: Licence,
    /// Whether the licence lets copies be handed on.
    #[serde(default)]
    pub redistribute: bool,
    pub files: Vec<DatasetFile>,
}

/// One published file and the file that comes of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetFile {
    /// The address, at one commit.
    pub url: String,
    /// In the directory that datasets are fetched into, where recipes look for it.
    pub path: String,
    /// By which its questions or notes are read; absent of a file that has none.
    pub format: Option<Format>,
    /// Of the published file, where it is known.
    pub size_bytes: Option<u64>,
    /// Of the published file, 64 hexadecimal digits, where it is known.
    pub sha256: Option<String>,
    /// What is made of the published file, which is not kept; without it the file is kept as it is.
    pub convert: Option<Conversion>,
}

/// How a published file becomes one that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conversion {
    /// MMLU-Pro's Parquet file to JSON Lines, its professional medicine questions alone.
    MmluPro,
    /// MedGuards' merged CSV of MEDEC to the clinicians' keywords of its MEDEC-MS notes, as `--keywords` takes them.
    Keywords,
}

impl DatasetCard {
    /// Every card in the binary, in the order of their names.
    pub fn all() -> &'static [Self] {
        &CARDS
    }

    /// The card of this name in the binary.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|card| card.name == name)
    }

    /// The dataset that a file is of, as it lies in a directory that datasets were fetched into, and what the card says of it.
    pub fn of_file(path: &Path) -> Option<(&'static Self, &'static DatasetFile)> {
        let mut files =
            Self::all().iter().flat_map(|card| card.files.iter().map(move |file| (card, file)));
        files.find(|(_, file)| path.ends_with(&file.path))
    }

    /// What brings a file that is not there, where it is one of a dataset.
    pub fn remedy(path: &Path) -> Option<String> {
        let (card, file) = Self::of_file(path)?;
        let root = path.ancestors().nth(Path::new(&file.path).iter().count())?;
        let here = std::env::current_dir().unwrap_or_default();
        let root = Path::new(".").join(root.strip_prefix(here).unwrap_or(root));
        let root = root.display();
        Some(format!("`wardround data fetch {} --to {root}` brings it", card.name))
    }

    /// The card of this name in the binary, or in the file of this path.
    ///
    /// # Errors
    /// A name that no card has, a file that is none.
    pub fn open(name: &str) -> Result<Self, HubError> {
        let path = Path::new(name);
        match Self::find(name) {
            Some(card) => Ok(card.clone()),
            None if path.is_file() => Self::parse(&outside::text(path)?, path),
            None => Err(HubError::UnknownDataset { name: name.to_owned() }),
        }
    }

    /// # Errors
    /// What is no card, or leads out of the directory; `path` says where it stands.
    pub fn parse(text: &str, path: &Path) -> Result<Self, HubError> {
        let malformed = |reason: String| HubError::Malformed { path: path.to_owned(), reason };
        let card: Self = outside::toml(text).map_err(malformed)?;
        match card.files.iter().find(|file| !outside::is_below(&file.path)) {
            Some(file) => Err(malformed(format!("{} leads out of the directory", file.path))),
            None => Ok(card),
        }
    }

    /// All published files together; `None` where the size of one is not known.
    pub fn size_bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size_bytes).sum()
    }
}

/// Whether a name is what a pattern says, in which each `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern = regex::escape(pattern).replace(r"\*", ".*");
    Regex::new(&format!("(?s)^{pattern}$")).is_ok_and(|pattern| pattern.is_match(name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_file_of_a_dataset_says_what_brings_it() {
        let of = |path: &str| DatasetCard::remedy(Path::new(path));
        let told = |root: &str| Some(format!("`wardround data fetch medqa --to {root}` brings it"));
        assert_eq!(of("data/medqa/us_5opt_test.jsonl"), told("./data"));
        assert_eq!(of("medqa/us_5opt_test.jsonl"), told("./"));
        assert_eq!(of("questions.jsonl"), None);
    }

    #[test]
    fn every_card_parses_and_no_two_files_share_a_path() {
        let mut paths = BTreeSet::new();
        for (name, text) in DATASETS {
            let card = DatasetCard::parse(text, Path::new(name)).unwrap();
            assert_eq!(*name, format!("{}.toml", card.name));
            assert!(DatasetCard::find(&card.name).is_some());
            assert!(card.licence.url.starts_with("https://"), "{name}");
            for file in &card.files {
                assert!(paths.insert(file.path.clone()), "{}", file.path);
            }
        }
        assert_eq!(DatasetCard::all().len(), DATASETS.len());
    }

    #[test]
    fn files_lie_where_recipes_look_for_them() {
        let paths: BTreeSet<String> = DatasetCard::all()
            .iter()
            .flat_map(|card| card.files.iter().map(|file| file.path.clone()))
            .collect();
        let recipes = fs_err::read_dir("recipes").unwrap();
        let recipes = recipes.map(|entry| entry.unwrap().path());
        for recipe in recipes.filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let recipe: toml::Table = fs_err::read_to_string(&recipe).unwrap().parse().unwrap();
            let Some(datasets) = recipe.get("dataset") else {
                assert!(recipe.contains_key("like"), "no dataset");
                continue;
            };
            for dataset in datasets.as_array().unwrap() {
                let file = dataset["file"].as_str().unwrap();
                assert!(paths.contains(file), "no card has {file}");
            }
        }
    }

    #[test]
    fn a_card_puts_no_file_out_of_the_directory() {
        let (_, text) = DATASETS.iter().find(|(name, _)| *name == "medqa.toml").unwrap();
        let text = text.replacen("path = \"medqa/", "path = \"../", 1);
        let error = DatasetCard::parse(&text, Path::new("own.toml")).unwrap_err().to_string();
        assert!(error.contains("leads out"), "{error}");
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_the_sums_are_those_of_the_published_files_at_hand() {
        let data = std::env::var_os("WARDROUND_DATA").map(std::path::PathBuf::from).unwrap();
        let mut checked = 0;
        for card in DatasetCard::all() {
            for file in &card.files {
                let path = data.join(&file.path);
                if file.convert.is_none() && path.is_file() {
                    let sum = crate::hub::sha256_file(&path).unwrap();
                    assert_eq!(file.sha256.as_deref(), Some(sum.as_str()), "{}", file.path);
                    assert_eq!(file.size_bytes, Some(fs_err::metadata(&path).unwrap().len()));
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 12);
    }
}
