//! MEDEC: clinical notes with at most one error each, as CSV. Only MEDEC-MS is loaded.
//!
//! Columns are found by name: `Text ID`, `Text`, `Sentences`, `Error Flag`, `Error Sentence ID`, `Error Sentence`,
//! `Corrected Sentence`, and `Error Type` if there is one; others, such as the shared task's index, are ignored.
//! `Sentences` numbers its lines from 0. Rows without an id are left out and counted: the published test set has them
//! where MEDEC-UW was. MEDEC-UW itself is under a data-use agreement: a row whose id does not begin with `ms-` is not
//! loaded, and counted.
//!
//! A row of flag 1 names one of its sentences and corrects it. The dataset is
//! named after its ids, such as `medec-ms-test`.

use serde_json::Value;

use super::row::Row;
use super::sentences::{ESCAPED, has_a_number_twice, numbered};
use super::source::{self, Rows, Source};
use super::{DataError, Dataset, ItemKind, Note, Place, notice, script};
use crate::record::GoldLine;

const ID: &str = "Text ID";

/// The number of MEDEC's test notes, MEDEC-UW included.
const PAPER_NOTES: usize = 925;

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let (mut rows, total, mut notices) = rows(source)?;
    let identified = rows.rows.len();
    rows.rows.retain(|row| {
        let id = row.get(ID).and_then(Value::as_str);
        id.is_none_or(|id| id.trim_start().starts_with("ms-"))
    });
    notices.extend(notice(
        "rows whose id does not begin with ms-, not loaded (MEDEC-UW is under a data-use agreement)",
        identified - rows.rows.len(),
        total,
    ));
    let notes = source::numbered(rows.rows, |row, _| note(row))?;
    let read = notes.len();
    let split = split(&notes);
    if read > 0 {
        notices.push(match split.as_deref() {
            Some("ms-test") => {
                format!("MEDEC-MS, {read} of the paper's {PAPER_NOTES} notes: its figures are not comparable")
            }
            _ => "MEDEC-MS, and not the paper's test notes: its figures are not comparable".to_owned(),
        });
    }
    dataset("medec", source, split, notes, notices)
}

/// The rows of a file with MEDEC's columns that have an id, how many it has with and without one, and the notice about these.
///
/// # Errors
/// The file is not CSV.
pub(super) fn rows(source: &Source) -> Result<(Rows, usize, Vec<String>), DataError> {
    let mut table = source.table()?;
    let total = table.rows.len() + table.blank_lines;
    table.rows.retain(|row| row.get(ID).is_some());
    let without = notice("rows without an id, left out", total - table.rows.len(), total);
    Ok((table, total, without.into_iter().collect()))
}

/// The note of a row with MEDEC's columns.
///
/// # Errors
/// Sentences that are not numbered from 0, each once; an error that is none of them; a place of one where there is none.
pub(super) fn note(row: &Row) -> Result<Note, DataError> {
    let (id, text) = (row.id(ID)?, row.text("Text")?);
    let sentences = numbered(row.text("Sentences")?, text);
    if sentences.is_empty() {
        return Err(row.wrong("Sentences", "does not begin with 0"));
    }
    if has_a_number_twice(&sentences, text) {
        return Err(row.wrong("Sentences", "has a number twice"));
    }
    Ok(Note {
        id,
        gold: Some(gold(row, &sentences)?),
        language: script::language(text),
        text: text.to_owned(),
        sentences: sentences.into_iter().map(str::to_owned).collect(),
    })
}

fn gold(row: &Row, sentences: &[&str]) -> Result<GoldLine, DataError> {
    let place = row.optional_text("Error Sentence ID")?;
    let place = place.and_then(|place| place.trim().parse::<usize>().ok());
    match (row.text("Error Flag")?.trim(), place) {
        ("0", None) => return Ok(GoldLine::default()),
        ("0", Some(_)) => {
            return Err(
                row.wrong("Error Sentence ID", "is one, and the flag says that there is no error")
            );
        }
        ("1", _) => {}
        _ => return Err(row.wrong("Error Flag", "is not 0 or 1")),
    }
    let sentence_id = place.filter(|place| *place < sentences.len()).ok_or_else(|| {
        row.wrong("Error Sentence ID", format!("is not one of 0 to {}", sentences.len() - 1))
    })?;
    let sentence = row.text("Error Sentence")?;
    // Three published errors are worded otherwise than their sentence. One that is another sentence is of a wrong id.
    let words = bare(sentence);
    let is_of = |other: &&str| bare(other) == words;
    if !is_of(&sentences[sentence_id]) && sentences.iter().any(is_of) {
        let problem = format!("is another sentence than {sentence_id}");
        return Err(row.wrong("Error Sentence", problem));
    }
    let kind = row.optional_text("Error Type")?.map(str::trim).filter(|kind| *kind != "NA");
    Ok(GoldLine {
        flag: true,
        sentence_id: Some(sentence_id),
        sentence: Some(sentence.to_owned()),
        correction: Some(row.text("Corrected Sentence")?.to_owned()),
        kind: kind.map(str::to_owned),
        keywords: Vec::new(),
    })
}

/// A text without blanks and marks, which annotators lose where they copy.
pub(super) fn bare(text: &str) -> String {
    text.replace(ESCAPED, " ").chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// The part before the last dash of the ids, such as `ms-test` of `ms-test-17`, if it is the same in all.
pub(super) fn split(notes: &[(Place, Note)]) -> Option<String> {
    let mut stems = notes.iter().map(|(_, note)| note.id.rsplit_once('-'));
    let (first, _) = stems.next()??;
    let all = stems.all(|stem| stem.is_some_and(|(stem, _)| stem == first));
    all.then(|| first.to_owned())
}

/// The dataset, named after the part of it that its notes are of.
pub(super) fn dataset(
    name: &str,
    source: &Source,
    split: Option<String>,
    notes: Vec<(Place, Note)>,
    notices: Vec<String>,
) -> Result<Dataset, DataError> {
    let name = split.map_or_else(|| name.to_owned(), |split| format!("{name}-{split}"));
    Dataset::new(name, &source.path, &[source], ItemKind::Notes, notes, notices)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Format, load};
    use super::*;
    use crate::record::Language;

    const HEADER: &str = "Text ID,Text,Sentences,Error Flag,Error Type,Error Sentence ID,Error Sentence,Corrected Sentence,Corrected Text\n";
    const WRONG: &str = "ms-test-0,A. B.,\"0 A.\r\n1 B.\r\n\",1, diagnosis ,1,B.,\"C, D.\",A. C.\n";
    const RIGHT: &str = "ms-test-1,A.,0 A.,0,NA,-1,NA,NA,NA\n";

    fn parse(text: &str) -> Result<Dataset, DataError> {
        let source = Source::new(Path::new("MEDEC.csv"), text.as_bytes().to_vec())?;
        Format::Medec.read(&source)
    }

    /// What is wrong with a file whose second row this is.
    fn problem(row: &str) -> String {
        let text = format!("{HEADER}{RIGHT}{row}");
        parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn reads_a_row() {
        let dataset = parse(&format!("{HEADER}{WRONG}{RIGHT}")).unwrap();
        assert_eq!(dataset.name, "medec-ms-test");
        let [wrong, right] = dataset.notes()[..] else {
            panic!("{dataset:?}");
        };
        assert_eq!(wrong.sentences, ["A.", "B."]);
        assert_eq!((&*wrong.id, &*wrong.text), ("ms-test-0", "A. B."));
        assert_eq!(wrong.language, Language::English);
        let error = wrong.error().unwrap();
        assert_eq!((error.sentence_id, error.sentence.as_deref()), (Some(1), Some("B.")));
        assert_eq!(error.correction.as_deref(), Some("C, D."));
        assert_eq!(error.kind.as_deref(), Some("diagnosis"));
        assert!(error.keywords.is_empty());
        assert_eq!(right.gold, Some(GoldLine::default()));
    }

    #[test]
    fn reads_the_shared_tasks_columns() {
        let header = ",Text ID,Text,Sentences,Error Flag,Error Sentence ID,Error Sentence,Corrected Sentence\r\n";
        let text = format!("{header}0,ms-train-7,A.,0 A.,1,0,A.,B.\r\n");
        let dataset = parse(&text).unwrap();
        let gold = dataset.notes()[0].gold.clone().unwrap();
        assert_eq!(gold.kind, None);
        assert_eq!(
            dataset.notices,
            ["MEDEC-MS, and not the paper's test notes: its figures are not comparable"]
        );
    }

    #[test]
    fn rows_without_an_id_and_those_of_medec_uw_are_left_out_and_counted() {
        let secret = RIGHT.replace("ms-test-1,A.", "uw-test-1,\"");
        let secret = secret.replace(",0 A.", "secret\",");
        let blank = ",,,,,,,,\r\n";
        let text = format!("{HEADER}{RIGHT}{secret}{blank}\n{blank},A.,0 A.,0,,-1,,,\n");
        let dataset = parse(&text).unwrap();
        assert_eq!(dataset.items.len(), 1);
        assert_eq!(
            dataset.notices,
            [
                "rows without an id, left out: 4 of 6",
                "rows whose id does not begin with ms-, not loaded (MEDEC-UW is under a data-use agreement): 1 of 6",
                "MEDEC-MS, 1 of the paper's 925 notes: its figures are not comparable",
            ]
        );
        assert!(!format!("{dataset:?}").contains("secret"));
        let none = parse(&format!("{HEADER}{secret}")).unwrap_err().to_string();
        assert!(none.starts_with("MEDEC.csv: no notes; rows whose id"), "{none}");
    }

    #[test]
    fn refuses_gold_that_does_not_hold_together() {
        let wrong = WRONG.replace("ms-test-0", "ms-test-7");
        let cases = [
            (wrong.replace(",1,B.", ",2,B."), "`Error Sentence ID` is not one of 0 to 1"),
            (wrong.replace(",1,B.", ",-1,B."), "`Error Sentence ID` is not one of 0 to 1"),
            (wrong.replace("\"C, D.\"", ""), "`Corrected Sentence` is missing"),
            (wrong.replace(",1, d", ",2, d"), "`Error Flag` is not 0 or 1"),
            (wrong.replace("\"0 A", "\"A"), "`Sentences` does not begin with 0"),
            (wrong.replace("\r\n1 B", "\r\n0 B"), "`Sentences` has a number twice"),
            (wrong.replace("\r\n1 B", " B"), "`Error Sentence ID` is not one of 0 to 0"),
            (
                wrong.replace(",1, d", ",0, d"),
                "`Error Sentence ID` is one, and the flag says that there is no error",
            ),
            (wrong.replace(",A. B.,", ",,"), "`Text` is missing"),
            (wrong.replace(",1,B.", ",0,B."), "`Error Sentence` is another sentence than 0"),
        ];
        for (row, expected) in cases {
            assert_eq!(problem(&row), format!("MEDEC.csv:3: field {expected}"));
        }
        assert_eq!(problem(RIGHT), "MEDEC.csv:3: the id `ms-test-1` came before, in line 2");
    }

    #[test]
    fn blanks_and_marks_make_no_difference() {
        for (one, other) in [
            ("The patient's BP is\n 120/80 mm Hg.", "The patients BP is 120/80 mm Hg"),
            ("He took 1.5 mg.", "He took 1.5 mg ."),
            ("发热，咳嗽。", "发热咳嗽"),
            ("a\\nb", "a b"),
        ] {
            assert_eq!(bare(one), bare(other), "{one} {other}");
        }
        for other in ["He is ill.", "he is well."] {
            assert_ne!(bare("He is well."), bare(other), "{other}");
        }
    }

    #[test]
    fn refuses_a_file_without_its_columns() {
        let without = |column: &str| {
            parse(&format!("{HEADER}{RIGHT}").replace(column, "x")).unwrap_err().to_string()
        };
        assert_eq!(without("Sentences"), "MEDEC.csv:2: field `Sentences` is missing");
        assert_eq!(without("Text ID"), "MEDEC.csv: no notes; rows without an id, left out: 1 of 1");
        assert_eq!(parse("").unwrap_err().to_string(), "MEDEC.csv: no notes");
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_reads_the_published_sets() {
        let directory = std::env::var("WARDROUND_DATA").unwrap();
        let read = |set: &str| {
            let file = format!("medec/MEDEC-MS-{set}Set-with-GroundTruth-and-ErrorType.csv");
            load(&Path::new(&directory).join(file), Format::Medec).unwrap()
        };
        let test = read("Test");
        let errors = |dataset: &Dataset| {
            let notes = dataset.notes().into_iter();
            notes.filter(|note| note.error().is_some()).count()
        };
        assert_eq!((test.items.len(), errors(&test)), (597, 311));
        assert_eq!(
            test.notices,
            [
                "rows without an id, left out: 328 of 925",
                "MEDEC-MS, 597 of the paper's 925 notes: its figures are not comparable"
            ]
        );
        let validation = read("Validation");
        assert_eq!(validation.name, "medec-ms-val");
        assert_eq!((validation.items.len(), errors(&validation)), (574, 319));
    }
}
