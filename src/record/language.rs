//! The language of a note: it decides how sentences are cut into words and compared.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
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

    /// Every name, as an error lists them.
    pub fn names() -> String {
        Language::ALL.map(Language::name).join(", ")
    }

    pub fn name(self) -> &'static str {
        match self {
            Language::English => "english",
            Language::Chinese => "chinese",
            Language::Arabic => "arabic",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(name: &str) -> Result<Language, String> {
        let mut all = Language::ALL.into_iter();
        all.find(|language| language.name() == name)
            .ok_or_else(|| format!("no language `{name}`: {}", Language::names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_has_one_name_everywhere() {
        for language in Language::ALL {
            assert_eq!(language.to_string().parse(), Ok(language));
            let json = serde_json::to_string(&language).unwrap();
            assert_eq!(json, format!("\"{language}\""));
            assert_eq!(serde_json::from_str::<Language>(&json).unwrap(), language);
        }
        let old = serde_json::from_str::<Language>("\"japanese\"").unwrap();
        assert!(old == Language::Chinese && "japanese".parse::<Language>().is_err());
        let error = "English".parse::<Language>().unwrap_err();
        assert_eq!(error, "no language `English`: english, chinese, arabic");
    }
}
