//! PubMedQA: the expert-labelled questions of `ori_pqal.json`, each with its abstract, answered Yes, No or Maybe.
//!
//! The file is one object from PubMed ids to records with `QUESTION`, `CONTEXTS` (a list) and `final_decision`; other
//! fields are ignored. If `test_ground_truth.json` lies beside it,
//! only its ids are loaded, in the order of `ori_pqal.json`: the official test set of 500. Without it all records are loaded, and the notices say so. The ids are MedAgentBoard's, such as
//! `pubmedqa_mc_21645374`.

use super::row::Row;
use super::source::Source;
use super::{Choice, DataError, Dataset, ItemKind, Question};
use crate::outside;

/// What is read beside the questions, where it is there.
pub const TEST_FILE: &str = "test_ground_truth.json";

/// The options: letter, text, and the label in the file.
const OPTIONS: [(char, &str, &str); 3] =
    [('A', "Yes", "yes"), ('B', "No", "no"), ('C', "Maybe", "maybe")];

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let path = source.path.with_file_name(TEST_FILE);
    let test = outside::if_there(outside::file(&path))?;
    let test = test.map(|bytes| Source::new(&path, bytes)).transpose()?;
    select(source, test.as_ref())
}

/// The questions that the test file lists; without a test file all.
fn select(source: &Source, test: Option<&Source>) -> Result<Dataset, DataError> {
    let records = source.members()?;
    let listed = test.map(Source::members).transpose()?;
    let total = records.len();
    let is_taken = |pmid: &str| listed.as_ref().is_none_or(|listed| listed.contains_key(pmid));
    let taken = records.into_iter().filter(|(pmid, _)| is_taken(pmid)).map(|(pmid, record)| {
        let row = Row::new(source.at_record(&pmid), record)?;
        let question = question(&row, &pmid)?;
        Ok((row.place, question))
    });
    let questions = taken.collect::<Result<Vec<_>, DataError>>()?;
    let notice = match test {
        Some(_) => {
            let taken = questions.len();
            format!("questions taken, those that {TEST_FILE} lists: {taken} of {total}")
        }
        None => {
            format!("no {TEST_FILE} beside the file: not the test set, but all {total} questions")
        }
    };
    let sources: Vec<&Source> = [Some(source), test].into_iter().flatten().collect();
    Dataset::new("pubmedqa", &source.path, &sources, ItemKind::Questions, questions, vec![notice])
}

fn question(row: &Row, pmid: &str) -> Result<Question, DataError> {
    let decision = row.text("final_decision")?;
    let gold = OPTIONS.iter().find(|(_, _, label)| *label == decision);
    let gold = gold.ok_or_else(|| row.wrong("final_decision", "is not yes, no or maybe"))?;
    let (asked, context) = (row.text("QUESTION")?, row.texts("CONTEXTS")?.join(" "));
    Ok(Question {
        id: format!("pubmedqa_mc_{pmid}"),
        question: format!("{asked}\n\nContext: {context}"),
        options: OPTIONS.map(|(letter, text, _)| Choice { letter, text: text.to_owned() }).to_vec(),
        gold: Some(gold.0),
        ..Question::default()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Format, load};
    use super::*;

    const RECORDS: &str = r#"{
 "12": {"QUESTION": "q?", "CONTEXTS": ["one.", "two."], "LONG_ANSWER": "so it is", "final_decision": "yes"},
 "7": {"QUESTION": "r?", "CONTEXTS": ["three."], "final_decision": "maybe"}
}"#;

    fn parse(records: &str, labels: Option<&str>) -> Result<Dataset, DataError> {
        let source = Source::new(Path::new("ori_pqal.json"), records.as_bytes().to_vec())?;
        let test = labels
            .map(|labels| Source::new(Path::new(TEST_FILE), labels.as_bytes().to_vec()))
            .transpose()?;
        select(&source, test.as_ref())
    }

    fn problem(records: &str, labels: Option<&str>) -> String {
        parse(records, labels).err().unwrap().to_string()
    }

    #[test]
    fn joins_question_and_context() {
        let dataset = parse(RECORDS, None).unwrap();
        let question = dataset.questions()[0];
        assert_eq!((question.id.as_str(), question.gold), ("pubmedqa_mc_12", Some('A')));
        assert_eq!(question.question, "q?\n\nContext: one. two.");
        assert_eq!(question.option('C'), Some("Maybe"));
        assert_eq!(
            dataset.notices,
            ["no test_ground_truth.json beside the file: not the test set, but all 2 questions"]
        );
    }

    #[test]
    fn takes_the_test_set_alone() {
        let dataset = parse(RECORDS, Some(r#"{"7": "maybe"}"#)).unwrap();
        assert_eq!(dataset.items.len(), 1);
        assert_eq!(dataset.items[0].id(), "pubmedqa_mc_7");
        assert_eq!(
            dataset.notices,
            ["questions taken, those that test_ground_truth.json lists: 1 of 2"]
        );
        assert_ne!(dataset.sha256, parse(RECORDS, None).unwrap().sha256);
    }

    #[test]
    fn refuses_labels_that_are_unknown() {
        assert_eq!(
            problem(&RECORDS.replace("maybe", "perhaps"), None),
            r#"ori_pqal.json: record 7: field `final_decision` is not yes, no or maybe"#
        );
    }

    #[test]
    fn refuses_bad_records() {
        let contexts = RECORDS.replace(r#"["three."]"#, "[]");
        assert_eq!(
            problem(&contexts, None),
            "ori_pqal.json: record 7: field `CONTEXTS` must be a list, and not empty"
        );
        let repeated = RECORDS.replace(r#""7""#, r#""12""#);
        assert_eq!(
            problem(&repeated, None),
            "ori_pqal.json:3: the key `12` comes twice, at column 5"
        );
        assert_eq!(
            problem(&RECORDS[..40], None),
            "ori_pqal.json:2: EOF while parsing a value, at column 38"
        );
        assert_eq!(problem("[]", None), "ori_pqal.json:1: an object is expected");
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_reads_the_published_test_set() {
        let directory = std::env::var("WARDROUND_DATA").unwrap();
        let dataset =
            load(&Path::new(&directory).join("pubmedqa/ori_pqal.json"), Format::Pubmedqa).unwrap();
        let count = |letter| {
            dataset.questions().iter().filter(|question| question.gold == Some(letter)).count()
        };
        assert_eq!((count('A'), count('B'), count('C')), (276, 169, 55));
        assert_eq!(dataset.questions().len(), 500);
        assert_eq!(
            dataset.notices,
            ["questions taken, those that test_ground_truth.json lists: 500 of 1000"]
        );
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_takes_all_published_questions_where_the_test_file_is_not() {
        let directory = std::env::var("WARDROUND_DATA").unwrap();
        let alone = tempfile::tempdir().unwrap();
        let path = alone.path().join("ori_pqal.json");
        fs_err::copy(Path::new(&directory).join("pubmedqa/ori_pqal.json"), &path).unwrap();
        assert_eq!(load(&path, Format::Pubmedqa).unwrap().questions().len(), 1000);
    }
}
