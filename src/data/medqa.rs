//! MedQA: the US test set as JSON Lines, with 4 or 5 options.
//!
//! A line has `question`, `options` (`{"A": …}`) and `answer_idx` (a letter); other fields (`answer`, that option's text,
//! `meta_info`, `metamap_phrases`) are ignored. The ids are MedAgentBoard's, `medqa_mc_001` for
//! the first record. The dataset is named `medqa-4opt` or `medqa-5opt`: both files give the same questions the same ids,
//! with different option letters.

use super::row::Row;
use super::source::Source;
use super::{DataError, Dataset, Question};

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let mut dataset = Dataset::of_questions("", source, source.json_lines()?, question)?;
    let options = dataset.questions().first().map_or(0, |first| first.options.len());
    dataset.name = format!("medqa-{options}opt");
    Ok(dataset)
}

fn question(row: &Row, number: usize) -> Result<Question, DataError> {
    let options = row.options("options")?;
    Ok(Question {
        id: format!("medqa_mc_{number:03}"),
        question: row.text("question")?.to_owned(),
        gold: Some(row.letter("answer_idx", &options)?),
        options,
        ..Question::default()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Format, load};
    use super::*;

    const LINE: &str = r#"{"question": "q", "answer": "x", "options": {"A": "w", "B": "x", "C": "y", "D": "z"}, "answer_idx": "B", "meta_info": "step1"}"#;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        Format::Medqa.read(&Source::new(Path::new("test.jsonl"), text.as_bytes().to_vec())?)
    }

    fn problem(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn reads_a_line() {
        let dataset = parse(&format!("{LINE}\n\n{LINE}\n")).unwrap();
        assert_eq!(dataset.name, "medqa-4opt");
        assert_eq!(dataset.notices, ["blank lines: 1"]);
        let question = dataset.questions()[1];
        assert_eq!((question.id.as_str(), question.gold), ("medqa_mc_002", Some('B')));
        assert_eq!(question.letters().collect::<String>(), "ABCD");
        assert_eq!(question.option('D'), Some("z"));
    }

    #[test]
    fn refuses_an_answer_that_is_no_option() {
        let line = LINE.replace(r#""answer_idx": "B""#, r#""answer_idx": "E""#);
        assert_eq!(problem(&line), r#"test.jsonl:1: field `answer_idx` is not one of A, B, C, D"#);
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_reads_the_published_test_sets() {
        let directory = std::env::var("WARDROUND_DATA").unwrap();
        for (file, name) in
            [("us_4opt_test.jsonl", "medqa-4opt"), ("us_5opt_test.jsonl", "medqa-5opt")]
        {
            let dataset =
                load(&Path::new(&directory).join("medqa").join(file), Format::Medqa).unwrap();
            assert_eq!((dataset.name.as_str(), dataset.questions().len()), (name, 1273));
            assert!(dataset.notices.is_empty());
            assert_eq!(dataset.questions()[1272].id, "medqa_mc_1273");
            let gold = dataset.questions()[0].gold.unwrap();
            let answer = "Tell the attending that he cannot fail to disclose this mistake";
            assert_eq!(dataset.questions()[0].option(gold), Some(answer));
        }
    }
}
