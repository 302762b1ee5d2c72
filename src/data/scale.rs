//! Questions whose options are steps of a scale: the plain format of questions, without answers, each option a whole number, a colon, and
//! what the step means: `"J": "10: says the same as the reference"`. A run on them has a mean step in place of an accuracy.

use super::source::Source;
use super::{DataError, Draft, Item, mcq};

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let mut draft = mcq::read(source)?;
    draft.notices.retain(|notice| !notice.starts_with("questions without an answer"));
    for item in &mut draft.items {
        let Ok((place, Item::Question(question))) = &*item else { continue };
        let mut steps: Vec<Option<i32>> =
            question.options.iter().map(|option| step(&option.text)).collect();
        let wrong = |field: &str, problem: &str| {
            let (place, field) = (place.clone(), field.to_owned());
            Err(DataError::Field { place, field, problem: problem.to_owned() })
        };
        if question.gold.is_some() {
            *item = wrong("answer", "is of no use: no step of a scale is right");
        } else if steps.contains(&None) {
            *item = wrong("options", "must each begin with a whole number and a colon");
        } else {
            let count = steps.len();
            steps.sort_unstable();
            steps.dedup();
            if steps.len() < count {
                *item = wrong("options", "have the same number twice");
            }
        }
    }
    Ok(draft)
}

/// The number of an option that is a step.
pub fn step(option: &str) -> Option<i32> {
    option.split_once(':')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, read};
    use super::*;

    fn parse(options: &str, more: &str) -> Result<Dataset, DataError> {
        let line = format!(r#"{{"question": "q?", "options": {options}{more}}}"#);
        read(Source::new(Path::new("scale.jsonl"), line.into_bytes())?, Format::Scale)
    }

    #[test]
    fn every_option_is_another_step() {
        let dataset = parse(r#"["1: wrong", "-2: worse", "10: right: in all"]"#, "").unwrap();
        let options = dataset.questions()[0].options.iter();
        let steps: Vec<_> = options.map(|option| step(&option.text)).collect();
        assert_eq!(steps, [Some(1), Some(-2), Some(10)]);
        assert!(dataset.notices.is_empty(), "{:?}", dataset.notices);
        for (options, more, problem) in [
            (r#"["1: a", "b"]"#, "", "must each begin with a whole number and a colon"),
            (r#"["1: a", "1.5: b"]"#, "", "must each begin with a whole number and a colon"),
            (r#"["1: a", "01: b"]"#, "", "have the same number twice"),
            (r#"["1: a", "2: b"]"#, r#", "answer": "A""#, "no step of a scale is right"),
        ] {
            let told = parse(options, more).unwrap_err().to_string();
            assert!(told.contains(problem), "{told}");
        }
    }
}
