//! MMLU-Pro's professional medicine questions, as JSON Lines.
//!
//! A line has `question_id`, `question`, `options` (a list), `answer` (a letter) and `src`; other fields (`answer_index`, the same
//! option from 0) are ignored. Options that read `N/A` fill a list up: as in MMLU-Pro's own code they are left out, and the others are
//! lettered by their place without them; the answer stays the option that it was. Only rows whose `src` is `ori_mmlu-professional_medicine` are loaded; the notices count
//! the others. Ids look like `mmlu_pro_6033`.

use super::row::Row;
use super::source::Source;
use super::{Choice, DataError, Dataset, Question, notice};

const SUBJECT: &str = "ori_mmlu-professional_medicine";
/// What stands in place of an option that a question lacks.
const NO_OPTION: &str = "N/A";

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let mut rows = source.json_lines()?;
    let total = rows.rows.len();
    let is_of_subject = |row: &Row| row.get("src").is_none_or(|src| src == SUBJECT);
    rows.rows.retain(is_of_subject);
    let told = format!("rows left out, whose src is not {SUBJECT}");
    rows.notices.extend(notice(&told, total - rows.rows.len(), total));
    let mut fillers = 0;
    let read = |row: &Row, _| question(row, &mut fillers);
    let mut dataset = Dataset::of_questions("mmlu-pro", source, rows, read)?;
    if fillers > 0 {
        dataset.notices.push(format!("options left out that read {NO_OPTION}: {fillers}"));
    }
    Ok(dataset)
}

/// A row's question; `fillers` counts the options that are none.
fn question(row: &Row, fillers: &mut usize) -> Result<Question, DataError> {
    row.require("src")?;
    let id = row.id("question_id")?;
    let listed = row.options("options")?;
    let answer = row.letter("answer", &listed)?;
    let kept: Vec<&Choice> = listed.iter().filter(|one| one.text != NO_OPTION).collect();
    let Some(gold) = kept.iter().position(|one| one.letter == answer) else {
        return Err(row.wrong("answer", format!("is {answer}, which reads {NO_OPTION}")));
    };
    if kept.len() < 2 {
        return Err(row.wrong("options", format!("must hold 2 or more that are not {NO_OPTION}")));
    }
    *fillers += listed.len() - kept.len();
    let lettered = ('A'..).zip(&kept);
    let options: Vec<Choice> =
        lettered.map(|(letter, one)| Choice { letter, text: one.text.clone() }).collect();
    Ok(Question {
        id: format!("mmlu_pro_{id}"),
        question: row.text("question")?.to_owned(),
        gold: Some(options[gold].letter),
        options,
        ..Question::default()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::{Format, load};
    use super::*;

    const LINE: &str = r#"{"question_id": 5, "question": "q", "options": ["x", "y", "z"], "answer": "C", "answer_index": 2, "src": "ori_mmlu-professional_medicine"}"#;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        Format::MmluPro.read(&Source::new(Path::new("test.jsonl"), text.as_bytes().to_vec())?)
    }

    fn problem(line: &str) -> String {
        parse(line).unwrap_err().to_string()
    }

    #[test]
    fn reads_a_line_and_counts_other_subjects() {
        let other = LINE.replace("professional_medicine", "anatomy");
        let dataset = parse(&format!("{other}\n{LINE}\n")).unwrap();
        assert_eq!(dataset.questions().len(), 1);
        let question = dataset.questions()[0];
        assert_eq!((question.id.as_str(), question.gold), ("mmlu_pro_5", Some('C')));
        assert_eq!(question.option('C'), Some("z"));
        assert_eq!(
            dataset.notices,
            ["rows left out, whose src is not ori_mmlu-professional_medicine: 1 of 2"]
        );
    }

    #[test]
    fn refuses_a_file_of_other_subjects_alone() {
        assert_eq!(
            problem(&LINE.replace("professional_medicine", "anatomy")),
            "test.jsonl: no questions; rows left out, whose src is not ori_mmlu-professional_medicine: 1 of 1"
        );
    }

    #[test]
    fn refuses_an_answer_that_is_no_option() {
        let letter = LINE.replace(r#""answer": "C""#, r#""answer": "D""#);
        assert_eq!(problem(&letter), r#"test.jsonl:1: field `answer` is not one of A, B, C"#);
    }

    #[test]
    fn what_reads_n_a_is_no_option_and_the_others_move_up() {
        let line = LINE.replace(r#"["x", "y", "z"]"#, r#"["x", "N/A", "z", "N/A"]"#);
        let dataset = parse(&line).unwrap();
        let question = dataset.questions()[0];
        assert_eq!(question.letters().collect::<String>(), "AB");
        assert_eq!((question.gold, question.option('B')), (Some('B'), Some("z")));
        assert_eq!(dataset.notices, ["options left out that read N/A: 2"]);
        let gold = LINE.replace(r#""z""#, r#""N/A""#);
        assert_eq!(problem(&gold), "test.jsonl:1: field `answer` is C, which reads N/A");
        let one = LINE.replace(r#"["x", "y", "z"]"#, r#"["N/A", "N/A", "z"]"#);
        assert_eq!(
            problem(&one),
            "test.jsonl:1: field `options` must hold 2 or more that are not N/A"
        );
    }

    #[test]
    fn refuses_repeated_ids() {
        let twice = format!("{LINE}\n{LINE}");
        assert_eq!(problem(&twice), "test.jsonl:2: the id `mmlu_pro_5` came before, in line 1");
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_reads_the_published_questions() {
        let directory = std::env::var("WARDROUND_DATA").unwrap();
        let path = Path::new(&directory).join("mmlu_pro/professional_medicine.jsonl");
        let dataset = load(&path, Format::MmluPro).unwrap();
        let mut histogram = BTreeMap::new();
        for question in dataset.questions() {
            *histogram.entry(question.options.len()).or_insert(0) += 1;
        }
        assert_eq!(
            histogram,
            BTreeMap::from([(10, 183), (4, 37), (9, 21), (8, 10), (7, 2), (6, 1)])
        );
        assert_eq!(dataset.questions().len(), 254);
        assert_eq!(
            (dataset.questions()[1].id.as_str(), dataset.questions()[1].gold),
            ("mmlu_pro_6034", Some('F'))
        );
    }
}
