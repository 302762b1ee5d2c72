//! The language of a note: it decides how sentences are cut into words and compared.

use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    #[default]
    English,
    // Runs of earlier versions have notes in Japanese, which is written without spaces, too.
    #[serde(alias = "japanese")]
    Chinese,
    Arabic,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_has_one_name_everywhere() {
        for name in Language::VARIANTS {
            let language: Language = name.parse().unwrap();
            let json = serde_json::to_string(&language).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Language>(&json).unwrap(), language);
        }
        let old = serde_json::from_str::<Language>("\"japanese\"").unwrap();
        assert!(old == Language::Chinese && "japanese".parse::<Language>().is_err());
        assert_eq!(Language::VARIANTS.join(", "), "english, chinese, arabic");
    }
}
