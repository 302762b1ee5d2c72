//! MMLU-Pro's professional medicine questions, as JSON Lines.
//!
//! A line has `question_id`, `question`, `options` (a list of 3 to 10), `answer` (a letter), `answer_index` (from 0,
//! the same option) and `src`. Options that read `N/A` fill a list up: as in MMLU-Pro's own code they are left out, and the others are
//! lettered by their place without them; the answer stays the option that it was. Only rows whose `src` is `ori_mmlu-professional_medicine` are loaded; the notices count
//! the others. Ids look like `mmlu_pro_6033`.

use super::error::shown;
use super::row::Row;
use super::source::Source;
use super::{Choice, DataError, Draft, Place, Question, notice};

const SUBJECT: &str = "ori_mmlu-professional_medicine";
/// What stands in place of an option that a question lacks.
const NO_OPTION: &str = "N/A";

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let records = source.json_lines()?;
    let mut notices = records.notices();
    let total = records.rows.len();
    let mut fillers = 0;
    let questions = records.rows.into_iter().filter_map(|row| taken(row, &mut fillers).transpose());
    let questions: Vec<_> = questions.collect();
    notices.extend(notice(
        &format!("rows left out, whose src is not {SUBJECT}"),
        total - questions.len(),
        total,
    ));
    if fillers > 0 {
        notices.push(format!("options left out that read {NO_OPTION}: {fillers}"));
    }
    Ok(Draft::new("mmlu-pro", &[source], questions, notices))
}

/// A row's question; `None` if it is of another subject. `fillers` counts the options that are none.
fn taken(
    row: Result<Row, DataError>,
    fillers: &mut usize,
) -> Result<Option<(Place, Question)>, DataError> {
    let row = row?;
    if row.text("src")? != SUBJECT {
        return Ok(None);
    }
    let question = question(&row, fillers)?;
    Ok(Some((row.place, question)))
}

fn question(row: &Row, fillers: &mut usize) -> Result<Question, DataError> {
    let id =
        row.optional_id("question_id")?.ok_or_else(|| row.wrong("question_id", "is missing"))?;
    let options = row.options("options")?;
    if options.len() < 3 {
        return Err(row.wrong("options", "must hold 3 to 10 options, not 2"));
    }
    let gold = row.letter("answer", &options)?;
    let index = row.require("answer_index")?;
    let indexed = index.as_u64().and_then(|index| options.get(usize::try_from(index).ok()?));
    if indexed.map(|choice| choice.letter) != Some(gold) {
        return Err(row.wrong(
            "answer_index",
            format!("is {}, not the index of answer {gold}", shown(index)),
        ));
    }
    if is_filler(options.iter().find(|one| one.letter == gold)) {
        return Err(row.wrong("answer", format!("is {gold}, which reads {NO_OPTION}")));
    }
    let (left_out, options): (Vec<Choice>, Vec<Choice>) =
        options.into_iter().partition(|one| is_filler(Some(one)));
    *fillers += left_out.len();
    if options.len() < 2 {
        return Err(row.wrong("options", format!("must hold 2 or more that are not {NO_OPTION}")));
    }
    let place = options.iter().position(|one| one.letter == gold);
    let lettered = ('A'..).zip(options);
    let options: Vec<Choice> =
        lettered.map(|(letter, one)| Choice { letter, text: one.text }).collect();
    Ok(Question {
        id: format!("mmlu_pro_{id}"),
        question: row.text("question")?.to_owned(),
        gold: place.and_then(|place| options.get(place)).map(|one| one.letter),
        options,
        ..Question::default()
    })
}

fn is_filler(option: Option<&Choice>) -> bool {
    option.is_some_and(|option| option.text == NO_OPTION)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::{Dataset, Format, load, read};
    use super::*;

    const LINE: &str = r#"{"question_id": 5, "question": "q", "options": ["x", "y", "z"], "answer": "C", "answer_index": 2, "src": "ori_mmlu-professional_medicine"}"#;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        read(Source::new(Path::new("test.jsonl"), text.as_bytes().to_vec())?, Format::MmluPro)
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
    fn refuses_an_answer_that_is_not_its_index() {
        let index = LINE.replace(r#""answer_index": 2"#, r#""answer_index": 1"#);
        assert_eq!(
            problem(&index),
            "test.jsonl:1: field `answer_index` is 1, not the index of answer C"
        );
        let index = LINE.replace(r#""answer_index": 2"#, r#""answer_index": -1"#);
        assert_eq!(
            problem(&index),
            "test.jsonl:1: field `answer_index` is -1, not the index of answer C"
        );
        let letter = LINE.replace(r#""answer": "C""#, r#""answer": "D""#);
        assert_eq!(problem(&letter), r#"test.jsonl:1: field `answer` is "D", not one of A, B, C"#);
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
    fn refuses_too_few_options_and_repeated_ids() {
        let two = LINE.replace(r#", "z""#, "");
        assert_eq!(problem(&two), "test.jsonl:1: field `options` must hold 3 to 10 options, not 2");
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
