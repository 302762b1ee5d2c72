//! MEDEC: clinical notes with at most one error each, as CSV. Only MEDEC-MS is loaded, unless the format is `medec-uw`.
//!
//! Columns are found by name: `Text ID`, `Text`, `Sentences`, `Error Flag`, `Error Sentence ID`, `Error Sentence`,
//! `Corrected Sentence`, and `Error Type` if there is one; others, such as the shared task's index, are ignored.
//! `Sentences` numbers its lines from 0. Rows without an id are left out and counted: the published test set has them
//! where MEDEC-UW was. MEDEC-UW itself is under a data-use agreement: a row whose id does not begin with `ms-` is not
//! loaded, and counted. Who signed the agreement names the format `medec-uw`, which takes ids with `uw-` too.
//!
//! A row of flag 0 has the sentence id -1; one of flag 1 names one of its sentences and corrects it. The dataset is
//! named after its ids, such as `medec-ms-test`.
//!
//! A row is refused whose numbers come twice, or whose error is in another wording than its sentence: no published row of MEDEC-MS is so.
//! Sentences that are others than those of the text are read as they stand, and counted: one test note's and one validation note's are.

use super::error::{quoted, shortened};
use super::row::Row;
use super::source::Source;
use super::{
    DataError, Draft, Note, NoteError, NoteGold, Place, contradiction, notice, script, sentences,
};
use crate::record::Language;

const COLUMNS: [&str; 7] = [
    "Text ID",
    "Text",
    "Sentences",
    "Error Flag",
    "Error Sentence ID",
    "Error Sentence",
    "Corrected Sentence",
];

/// The number of MEDEC's test notes, MEDEC-UW included.
const PAPER_NOTES: usize = 925;

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    read_subsets(source, &["ms-"])
}

/// With the notes of MEDEC-UW.
pub(super) fn read_with_uw(source: &Source) -> Result<Draft, DataError> {
    read_subsets(source, &["ms-", "uw-"])
}

/// The notes whose ids begin with one of these.
fn read_subsets(source: &Source, subsets: &[&str]) -> Result<Draft, DataError> {
    let mut records = records(source)?;
    let mut refused = 0;
    let notes = records.rows.into_iter().filter_map(|row| match row {
        Ok((id, _)) if !subsets.iter().any(|subset| id.starts_with(subset)) => {
            refused += 1;
            None
        }
        row => Some(row.and_then(|(id, row)| {
            let note = note(&row, id, Set::Medec)?;
            Ok((row.place, note))
        })),
    });
    let notes: Vec<_> = notes.collect();
    let notices = &mut records.notices;
    notices.extend(notice(
        &format!(
            "rows whose id does not begin with {}, not loaded (MEDEC-UW is under a data-use agreement)",
            subsets.join(" or ")
        ),
        refused,
        records.total,
    ));
    let of_uw = notes.iter().flatten().filter(|(_, note)| note.id.starts_with("uw-")).count();
    notices.extend(notice(
        "notes of MEDEC-UW, loaded: what is written of this run holds their texts and is under their data-use agreement",
        of_uw,
        notes.len(),
    ));
    notices.extend(contradiction::notices(&notes));
    let split = split(&notes);
    match split.as_deref() {
        _ if notes.iter().flatten().next().is_none() || of_uw > 0 => {}
        Some("ms-test") => notices.push(format!(
            "MS, {} of the paper's {PAPER_NOTES} notes: not comparable",
            notes.iter().flatten().count()
        )),
        _ => notices.push("MS, and not the paper's test notes: not comparable".to_owned()),
    }
    Ok(Draft::new(named("medec", split), &[source], notes, records.notices))
}

/// Whose rows they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Medec,
    /// Some of whose published errors are worded otherwise than their sentences.
    Mederrbench,
}

/// The rows that have an id.
pub(super) struct Records {
    pub rows: Vec<Result<(String, Row), DataError>>,
    /// Rows with and without an id.
    pub total: usize,
    /// The notice about rows without an id.
    pub notices: Vec<String>,
}

/// The rows of a file with MEDEC's columns.
///
/// # Errors
/// The file is not CSV; a column is missing.
pub(super) fn records(source: &Source) -> Result<Records, DataError> {
    let table = source.table()?;
    if let Some(header) = &table.header {
        let missing = COLUMNS.iter().find(|column| !header.fields.contains_key(**column));
        if let Some(column) = missing {
            return Err(header.wrong(column, "is no column of the file"));
        }
    }
    let total = table.rows.len() + table.blank_lines;
    let identified = |row: Result<Row, DataError>| {
        let row = row?;
        Ok(row.optional_id("Text ID")?.map(|id| (id, row)))
    };
    let rows = table.rows.into_iter().filter_map(|row| identified(row).transpose());
    let rows: Vec<_> = rows.collect();
    let notices = notice("rows without an id, left out", total - rows.len(), total);
    Ok(Records { rows, total, notices: notices.into_iter().collect() })
}

/// The note of a row with MEDEC's columns.
///
/// # Errors
/// Sentences that are not numbered from 0, or with a number that comes twice; inconsistent gold columns.
pub(super) fn note(row: &Row, id: String, set: Set) -> Result<Note, DataError> {
    let text = row.text("Text")?;
    let sentences = sentences::numbered(row.text("Sentences")?, text);
    if sentences.is_empty() {
        let problem = format!("of {} does not begin with 0", shortened(&id));
        return Err(row.wrong("Sentences", problem));
    }
    if let Some(number) = contradiction::number_twice(&sentences, text) {
        let problem = format!("of {} has the number {number} twice", shortened(&id));
        return Err(row.wrong("Sentences", problem));
    }
    Ok(Note {
        gold: Some(gold(row, &shortened(&id), &sentences, set)?),
        language: match set {
            Set::Medec => Language::English,
            Set::Mederrbench => script::language(text),
        },
        text: text.to_owned(),
        sentences: sentences.into_iter().map(str::to_owned).collect(),
        id,
    })
}

fn gold(row: &Row, id: &str, sentences: &[&str], set: Set) -> Result<NoteGold, DataError> {
    let sentence_id = row.text("Error Sentence ID")?.trim();
    match row.text("Error Flag")?.trim() {
        "0" if sentence_id == "-1" => Ok(NoteGold { error: None }),
        "0" => {
            let problem = format!("of {id} is {}, where flag 0 goes with -1", quoted(sentence_id));
            Err(row.wrong("Error Sentence ID", problem))
        }
        "1" => {
            let sentence_id = sentence_id.parse().ok().filter(|place| *place < sentences.len());
            let sentence_id = sentence_id.ok_or_else(|| {
                let found = row.text("Error Sentence ID").unwrap_or_default();
                let problem = format!(
                    "of {id} is {}, not one of 0 to {}",
                    quoted(found),
                    sentences.len() - 1
                );
                row.wrong("Error Sentence ID", problem)
            })?;
            let given = |column| given(row, column, id);
            let sentence = given("Error Sentence")?;
            let is_of = |other: &str| contradiction::is_same(&sentence, other);
            if !is_of(sentences[sentence_id])
                && (set == Set::Medec && id.starts_with("ms-")
                    || sentences.iter().any(|other| is_of(other)))
            {
                let (found, own) = (quoted(&sentence), quoted(sentences[sentence_id]));
                let problem = format!("of {id} is {found}, and sentence {sentence_id} is {own}");
                return Err(row.wrong("Error Sentence", problem));
            }
            Ok(NoteGold {
                error: Some(NoteError {
                    sentence_id,
                    sentence,
                    correction: given("Corrected Sentence")?,
                    kind: label(row, "Error Type")?,
                    keywords: Vec::new(),
                    difficulty: label(row, "Difficulty")?,
                    reasoning: label(row, "Reasoning Type")?,
                }),
            })
        }
        flag => Err(row.wrong("Error Flag", format!("of {id} is {}, not 0 or 1", quoted(flag)))),
    }
}

/// The text of a column that flag 1 requires.
fn given(row: &Row, column: &str, id: &str) -> Result<String, DataError> {
    match row.text(column)? {
        "NA" => Err(row.wrong(column, format!("of {id} is NA, where the flag is 1"))),
        text => Ok(text.to_owned()),
    }
}

/// A short text, trimmed; `None` for `NA`.
fn label(row: &Row, column: &str) -> Result<Option<String>, DataError> {
    let text = row.optional_text(column)?.map(str::trim);
    Ok(text.filter(|text| *text != "NA").map(str::to_owned))
}

/// The part before the last dash of the ids, such as `ms-test` of `ms-test-17`, if it is the same in all.
pub(super) fn split(notes: &[Result<(Place, Note), DataError>]) -> Option<String> {
    let mut stems = notes.iter().flatten().map(|(_, note)| note.id.rsplit_once('-'));
    let (first, _) = stems.next()??;
    let all = stems.all(|stem| stem.is_some_and(|(stem, _)| stem == first));
    all.then(|| first.to_owned())
}

pub(super) fn named(dataset: &str, split: Option<String>) -> String {
    match split {
        Some(split) => format!("{dataset}-{split}"),
        None => dataset.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, load, read};
    use super::*;

    const HEADER: &str = "Text ID,Text,Sentences,Error Flag,Error Type,Error Sentence ID,Error Sentence,Corrected Sentence,Corrected Text\n";
    const WRONG: &str = "ms-test-0,A. B.,\"0 A.\r\n1 B.\r\n\",1, diagnosis ,1,B.,\"C, D.\",A. C.\n";
    const RIGHT: &str = "ms-test-1,A.,0 A.,0,NA,-1,NA,NA,NA\n";

    fn parse(text: &str) -> Result<Dataset, DataError> {
        parse_as(text, Format::Medec)
    }

    fn parse_as(text: &str, format: Format) -> Result<Dataset, DataError> {
        let source = Source::new(Path::new("MEDEC.csv"), text.as_bytes().to_vec())?;
        read(source, format)
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
        let error = wrong.gold.as_ref().unwrap().error.as_ref().unwrap();
        assert_eq!((error.sentence_id, &*error.sentence), (1, "B."));
        assert_eq!(error.correction, "C, D.");
        assert_eq!(error.kind.as_deref(), Some("diagnosis"));
        assert!(error.keywords.is_empty() && error.difficulty.is_none());
        assert!(!right.gold.as_ref().unwrap().is_wrong());
    }

    #[test]
    fn reads_the_shared_tasks_columns() {
        let header = ",Text ID,Text,Sentences,Error Flag,Error Sentence ID,Error Sentence,Corrected Sentence\r\n";
        let text = format!("{header}0,ms-train-7,A.,0 A.,1,0,A.,B.\r\n");
        let dataset = parse(&text).unwrap();
        let gold = dataset.notes()[0].gold.clone().unwrap();
        assert_eq!(gold.error.unwrap().kind, None);
        assert_eq!(dataset.notices, ["MS, and not the paper's test notes: not comparable"]);
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
                "MS, 1 of the paper's 925 notes: not comparable",
            ]
        );
        assert!(!format!("{dataset:?}").contains("secret"));
        let none = parse(&format!("{HEADER}{secret}")).unwrap_err().to_string();
        assert!(none.starts_with("MEDEC.csv: no notes; rows whose id"), "{none}");
    }

    #[test]
    fn who_names_the_format_of_medec_uw_is_given_its_notes_too_and_is_told_so() {
        let others = RIGHT.replace("ms-test-1", "uw-test-1") + &RIGHT.replace("ms-test-1", "x-1");
        let dataset = parse_as(&format!("{HEADER}{RIGHT}{others}"), Format::MedecUw).unwrap();
        let ids: Vec<&str> = dataset.notes().iter().map(|note| note.id.as_str()).collect();
        assert_eq!((ids, &*dataset.name), (vec!["ms-test-1", "uw-test-1"], "medec"));
        assert_eq!(
            dataset.notices,
            [
                "rows whose id does not begin with ms- or uw-, not loaded (MEDEC-UW is under a data-use agreement): 1 of 3",
                "notes of MEDEC-UW, loaded: what is written of this run holds their texts and is under their data-use agreement: 1 of 2",
            ]
        );
        let without = parse_as(&format!("{HEADER}{RIGHT}"), Format::MedecUw).unwrap();
        assert_eq!(without.notices, ["MS, 1 of the paper's 925 notes: not comparable"]);
    }

    #[test]
    fn refuses_gold_that_does_not_hold_together() {
        let wrong = WRONG.replace("ms-test-0", "ms-test-7");
        let cases = [
            (
                wrong.replace(",1,B.", ",2,B."),
                "`Error Sentence ID` of ms-test-7 is \"2\", not one of 0 to 1",
            ),
            (
                wrong.replace(",1,B.", ",-1,B."),
                "`Error Sentence ID` of ms-test-7 is \"-1\", not one of 0 to 1",
            ),
            (
                wrong.replace("\"C, D.\"", "NA"),
                "`Corrected Sentence` of ms-test-7 is NA, where the flag is 1",
            ),
            (wrong.replace("\"C, D.\"", ""), "`Corrected Sentence` is missing"),
            (wrong.replace(",1, d", ",2, d"), "`Error Flag` of ms-test-7 is \"2\", not 0 or 1"),
            (
                wrong.replace(",1, d", ",0, d"),
                "`Error Sentence ID` of ms-test-7 is \"1\", where flag 0 goes with -1",
            ),
            (wrong.replace("\"0 A", "\"A"), "`Sentences` of ms-test-7 does not begin with 0"),
            (wrong.replace(",A. B.,", ",,"), "`Text` is missing"),
            (
                wrong.replace(",1,B.", ",0,B."),
                "`Error Sentence` of ms-test-7 is \"B.\", and sentence 0 is \"A.\"",
            ),
            (
                wrong.replace("1 B.\r\n", "1 B.\r\n1 C.\r\n"),
                "`Sentences` of ms-test-7 has the number 1 twice",
            ),
        ];
        for (row, expected) in cases {
            assert_eq!(problem(&row), format!("MEDEC.csv:3: field {expected}"));
        }
        assert_eq!(problem(RIGHT), "MEDEC.csv:3: the id `ms-test-1` came before, in line 2");
    }

    #[test]
    fn refuses_a_file_without_its_columns() {
        let text = format!("{HEADER}{RIGHT}").replace("Sentences", "Sentence");
        assert_eq!(
            parse(&text).unwrap_err().to_string(),
            "MEDEC.csv:1: field `Sentences` is no column of the file"
        );
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
            notes.filter(|note| note.gold.as_ref().unwrap().is_wrong()).count()
        };
        assert_eq!((test.items.len(), errors(&test)), (597, 311));
        assert_eq!(
            test.notices,
            [
                "rows without an id, left out: 328 of 925",
                "notes whose sentences are others than their text's, the first ms-test-529: 1 of 597",
                "MS, 597 of the paper's 925 notes: not comparable"
            ]
        );
        let validation = read("Validation");
        assert_eq!(validation.name, "medec-ms-val");
        assert_eq!((validation.items.len(), errors(&validation)), (574, 319));
    }
}
