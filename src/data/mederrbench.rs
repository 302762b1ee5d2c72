//! MedErrBench: MedGuards' clinical notes in English, Chinese and Arabic, as CSV.
//!
//! The columns are MEDEC's and `Important Words` (keywords that a correction must name, with separators between). English and Arabic rows have all sentences on one line. A note's language is detected from its script.
//! The dataset is named after its ids, such as `mederrbench-cn-test`.
//!
//! Of the published notes, 18 have other sentences than their text, and three errors are worded otherwise than their sentence: such are read as
//! they stand.

use super::source::{Source, numbered};
use super::{DataError, Dataset, medec};
use crate::text::split_keywords;

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let (rows, _, notices) = medec::rows(source)?;
    let notes = numbered(rows.rows, |row, _| {
        let mut note = medec::note(row)?;
        if let Some(error) = note.gold.as_mut().filter(|gold| gold.flag) {
            let words = split_keywords(row.text("Important Words")?);
            error.keywords = words.into_iter().map(str::to_owned).collect();
        }
        Ok(note)
    })?;
    medec::dataset("mederrbench", source, medec::split(&notes), notes, notices)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Format, load};
    use super::*;
    use crate::record::Language;

    const HEADER: &str = "Text ID,Text,Sentences,Error Flag,Error Sentence ID,Error Sentence,Error Type,Corrected Sentence,Corrected Text,Important Words,Difficulty,Reasoning Type\n";

    fn parse(rows: &str) -> Result<Dataset, DataError> {
        let text = format!("{HEADER}{rows}");
        let source = Source::new(Path::new("EN.csv"), text.into_bytes())?;
        Format::Mederrbench.read(&source)
    }

    #[test]
    fn reads_a_row() {
        let row = "en-val-0,A b. C d.,0 A b. 1 C d.,1,1,C d.,Lab / Serum Value,C e.,A b. C e.,\"e, f\n\",Medium ,Multi-hop\n";
        let dataset = parse(row).unwrap();
        assert_eq!(dataset.name, "mederrbench-en-val");
        let note = dataset.notes()[0];
        assert_eq!(note.sentences, ["A b.", "C d."]);
        assert_eq!(note.language, Language::English);
        let error = note.error().unwrap();
        assert_eq!(error.keywords, ["e", "f"]);
        assert_eq!(error.kind.as_deref(), Some("Lab / Serum Value"));
        let other = row.replace("en-val-0", "cn-test-1").replace("A b", "甲乙丙");
        let mixed = parse(&format!("{row}{other}")).unwrap();
        assert_eq!(mixed.name, "mederrbench");
        assert_eq!(mixed.notes()[1].language, Language::Chinese);
    }

    #[test]
    fn an_error_needs_important_words() {
        let row = "en-val-0,A b.,0 A b.,1,0,A b.,NA,C b.,C b.,,Easy,NA\n";
        assert_eq!(
            parse(row).unwrap_err().to_string(),
            "EN.csv:2: field `Important Words` is missing"
        );
    }

    #[test]
    fn an_error_in_other_words_is_read_and_one_of_another_sentence_refused() {
        let row = |id: usize, sentence: &str| {
            format!(
                "en-val-0,A b. C d.,0 A b. 1 C d.,1,{id},{sentence},Lab,C e.,A b. C e.,e,Easy,NA\n"
            )
        };
        assert_eq!(parse(&row(1, "C b d.")).unwrap().items.len(), 1);
        assert_eq!(parse(&row(1, "C d")).unwrap().items.len(), 1);
        assert_eq!(
            parse(&row(0, "C d.")).unwrap_err().to_string(),
            "EN.csv:2: field `Error Sentence` is another sentence than 0"
        );
    }

    #[test]
    fn sentences_are_numbered_through_a_list_of_laboratory_values() {
        let values: Vec<String> =
            (9..24).map(|number| format!("Value{number} {} mg/dL", number + 1)).collect();
        let plain: Vec<String> =
            (0..8).map(|number| format!("He took {} pills.", number + 1)).collect();
        let text = format!("{} Tests show: {} Rest.", plain.join(" "), values.join(" "));
        let numbered: Vec<String> =
            (0..8).map(|number| format!("{number} He took {} pills.", number + 1)).collect();
        let listed: Vec<String> =
            (9..24).zip(&values).map(|(number, value)| format!("{number} {value}")).collect();
        let sentences =
            format!("{} 8 Tests show: {} 24 Rest.", numbered.join(" "), listed.join(" "));
        let row =
            format!("en-train-0,{text},{sentences},1,24,Rest.,Lab,Walk.,x,Walk,Easy,Single-hop\n");
        let dataset = parse(&row).unwrap();
        let sentences = &dataset.notes()[0].sentences;
        assert_eq!(sentences.len(), 25, "{sentences:?}");
        assert_eq!((&*sentences[9], &*sentences[24]), ("Value9 10 mg/dL", "Rest."));
    }

    #[test]
    fn a_row_of_nothing_is_refused_in_few_words() {
        let good = "en-val-0,A b.,0 A b.,0,-1,NA,NA,NA,NA,NA,Easy,NA\n";
        for (nothing, problem) in [
            ("\0".repeat(5000), "1 cells, where the header has 12"),
            (
                format!("{0},A,{0},0,-1,,,,,,,", "\0".repeat(5000)),
                "`Text ID` is empty, or has spaces",
            ),
            (format!("en-val-1,A,{},0,-1,,,,,,,", "\0".repeat(5000)), "does not begin with 0"),
            (
                format!("en-val-1,A,0 A,{},-1,,,,,,,", "1".repeat(5000)),
                "`Error Flag` is not 0 or 1",
            ),
        ] {
            let error = parse(&format!("{good}{nothing}\n")).unwrap_err().to_string();
            assert!(error.starts_with("EN.csv:3: ") && error.contains(problem), "{error}");
            assert!(error.chars().count() < 400, "{error}");
        }
    }

    /// As an annotator copies a sentence: apostrophes, the last mark and doubled blanks may be lost.
    fn copied(sentence: &str) -> String {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let words = words.join(" ").replace('\'', "");
        words.trim_end_matches(['.', '،', ' ']).to_owned()
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_reads_the_published_sets() {
        let directory = std::env::var("WARDROUND_DATA").unwrap();
        // Notes, errors, and of those how many the numbered sentence gives again.
        for (file, language, expected) in [
            ("EN_test", Language::English, (208, 104, 102)),
            ("EN_validation", Language::English, (108, 54, 53)),
            ("CN_test", Language::Chinese, (200, 100, 100)),
            ("CN_validation", Language::Chinese, (100, 50, 50)),
            ("ARA_test", Language::Arabic, (97, 53, 53)),
            ("ARA_validation", Language::Arabic, (51, 29, 29)),
        ] {
            let path = format!("mederrbench/reviewed_data_{file}.csv");
            let path = Path::new(&directory).join(path);
            let dataset = load(&path, Format::Mederrbench).unwrap();
            let notes = dataset.notes();
            assert!(notes.iter().all(|note| note.language == language), "{file}");
            let errors = notes.iter().filter_map(|note| Some((note, note.error()?)));
            let same = errors.clone().filter(|(note, error)| {
                let place = error.sentence_id.unwrap();
                copied(&note.sentences[place]) == copied(error.sentence.as_deref().unwrap())
            });
            let counts = (notes.len(), errors.clone().count(), same.count());
            assert_eq!(counts, expected, "{file}");
            assert!(errors.clone().all(|(_, error)| !error.keywords.is_empty()));
            assert!(dataset.notices.is_empty(), "{file}");
        }
    }
}
