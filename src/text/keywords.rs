//! The keywords of a correction: given by an annotator, or what it has and the wrong sentence had not.

use super::sequence_matcher::SequenceMatcher;
use super::split_words;

/// The words of `corrected` that replace words of `error` or are inserted, each once, in order. The authors' code joins
/// them with blanks into one string.
pub fn diff_keywords<'a>(error: &str, corrected: &'a str) -> Vec<&'a str> {
    let error: Vec<&str> = split_words(error).collect();
    let corrected: Vec<&str> = split_words(corrected).collect();
    let mut keywords = Vec::new();
    for opcode in SequenceMatcher::new(&corrected).opcodes(&error) {
        if opcode.is_equal {
            continue;
        }
        for &word in &corrected[opcode.b] {
            if !keywords.contains(&word) {
                keywords.push(word);
            }
        }
    }
    keywords
}

/// The phrases of MedErrBench's `Important Words`; `NA` has none, nor have quotes and full stops left over between
/// separators.
pub fn split_keywords(important_words: &str) -> Vec<&str> {
    if important_words.trim() == "NA" {
        return Vec::new();
    }
    important_words
        .split([',', '，', '、', '+', ';', '\n'])
        .map(str::trim)
        .filter(|phrase| phrase.chars().any(char::is_alphanumeric))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_and_inserted_words_are_keywords_once() {
        let error = "The patient is given oral amoxicillin twice.";
        let corrected = "The patient is given intravenous vancomycin and intravenous fluids twice.";
        let keywords = diff_keywords(error, corrected);
        assert_eq!(keywords, ["intravenous", "vancomycin", "and", "fluids"]);
        assert_eq!(diff_keywords("no", "yes no"), ["yes"]);
    }

    #[test]
    fn a_correction_that_takes_words_away_has_no_keywords() {
        assert!(diff_keywords("Not at all given.", "Not given.").is_empty());
        assert!(diff_keywords("same", "same").is_empty());
    }

    #[test]
    fn important_words_are_split_into_phrases() {
        assert_eq!(split_keywords(" Chest tube insertion "), ["Chest tube insertion"]);
        assert_eq!(
            split_keywords("放疗，化疗、手术+ 随访;a, b\nc"),
            ["放疗", "化疗", "手术", "随访", "a", "b", "c"]
        );
        assert_eq!(split_keywords("Core needle biopsy\n\""), ["Core needle biopsy"]);
        assert!(split_keywords("NA").is_empty());
        assert!(split_keywords("").is_empty());
    }
}
