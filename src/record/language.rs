//! The language of a note: it decides how sentences are cut into words and compared.

use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    English,
    // Runs of earlier versions have notes in Japanese, which is written without spaces, too.
    #[serde(alias = "japanese")]
    Chinese,
    Arabic,
}

impl Language {
    pub const ALL: [Language; 3] = [Language::English, Language::Chinese, Language::Arabic];

    pub fn name(self) -> &'static str {
        match self {
            Language::English => "english",
            Language::Chinese => "chinese",
            Language::Arabic => "arabic",
        }
    }

    pub fn named(name: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_has_one_name_everywhere() {
        for language in Language::ALL {
            assert_eq!(Language::named(language.name()), Some(language));
            let json = serde_json::to_string(&language).unwrap();
            assert_eq!(json, format!("\"{}\"", language.name()));
            assert_eq!(serde_json::from_str::<Language>(&json).unwrap(), language);
        }
        let old = serde_json::from_str::<Language>("\"japanese\"").unwrap();
        assert!(old == Language::Chinese && Language::named("japanese").is_none());
    }
}
