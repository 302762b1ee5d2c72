//! The mean step of a run on a scale: what judges give the answers of another run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metrics::MetricsError;
use super::metrics::bootstrap::{self, Estimate};
use super::metrics::near_duplicates::units;
use super::metrics::over_runs::{OverRuns, mean};
use crate::data::Format;
use crate::data::scale::step;
use crate::experiment::contents::Contents;
use crate::record::{AnswerLine, ItemText};

/// Figures of a run whose options are steps. What could not be read has no step, and counts in neither mean but the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleFigures {
    /// The lowest and the highest step of any item.
    pub reach: [i32; 2],
    /// Of the items that have a step; `null` where a run has none.
    pub mean: Option<OverRuns>,
    /// The same where what has no step has the lowest.
    pub mean_at_least: Option<OverRuns>,
    /// Items times runs, and those of them without a step.
    pub n: usize,
    pub without: usize,
    /// How often each step was given.
    pub given: BTreeMap<i32, usize>,
}

pub fn is_scale(contents: &Contents) -> bool {
    let format: Result<Format, _> = contents.plan.dataset.format.parse();
    format.is_ok_and(|format| format == Format::Scale)
}

/// Each item's step, by its id and run; `None` of a run on other items.
pub fn steps(contents: &Contents) -> Option<BTreeMap<(&str, u32), Option<i32>>> {
    if !is_scale(contents) {
        return None;
    }
    let of = |line: &AnswerLine| {
        let Some(ItemText::Question(text)) = contents.texts.get(&line.item) else { return None };
        let letter = line.answer.chars().next().filter(|_| line.error.is_none())?;
        step(text.options.get(&letter)?)
    };
    let lines = contents.answers().into_values();
    Some(lines.map(|line| ((line.item.as_str(), line.run), of(line))).collect())
}

impl ScaleFigures {
    /// `None` of a run on other items, and of one without any.
    pub fn of(contents: &Contents) -> Option<ScaleFigures> {
        let steps = steps(contents)?;
        let texts = contents.texts.values().filter_map(|text| match text {
            ItemText::Question(question) => Some(question.options.values()),
            ItemText::Note(_) => None,
        });
        let all: Vec<i32> = texts.flatten().filter_map(|option| step(option)).collect();
        let (lowest, highest) = (*all.iter().min()?, *all.iter().max()?);
        let mut runs: BTreeMap<u32, Vec<Option<i32>>> = BTreeMap::new();
        for ((_, run), step) in &steps {
            runs.entry(*run).or_default().push(*step);
        }
        let over_runs = |least: Option<i32>| {
            let of_run = |steps: &Vec<Option<i32>>| {
                let steps = steps.iter().filter_map(|step| step.or(least).map(f64::from));
                mean(&steps.collect::<Vec<f64>>())
            };
            OverRuns::of(runs.values().map(of_run).collect::<Option<_>>()?)
        };
        Some(ScaleFigures {
            reach: [lowest, highest],
            mean: over_runs(None),
            mean_at_least: over_runs(Some(lowest)),
            n: steps.len(),
            without: steps.values().filter(|step| step.is_none()).count(),
            given: steps.values().flatten().fold(BTreeMap::new(), |mut given, step| {
                *given.entry(*step).or_default() += 1;
                given
            }),
        })
    }
}

/// The mean over the items that have a step, each item's over the runs, with its interval over the questions: answers of several runs to
/// one are drawn together.
///
/// # Errors
/// Never, of steps.
pub fn interval(contents: &Contents) -> Result<Option<Estimate>, MetricsError> {
    estimate(contents, means(contents))
}

/// The other's mean step less the first's, over the items that have one in both; `None` of runs on other items.
///
/// # Errors
/// Never, of steps.
pub fn difference(first: &Contents, other: &Contents) -> Result<Option<Estimate>, MetricsError> {
    let (left, right) = (means(first), means(other));
    let both = left.iter().filter_map(|(item, left)| Some((*item, right.get(item)? - left)));
    estimate(first, both.collect())
}

fn estimate(
    contents: &Contents,
    means: BTreeMap<&str, f64>,
) -> Result<Option<Estimate>, MetricsError> {
    let texts: Vec<Option<&ItemText>> = means.keys().map(|id| contents.texts.get(*id)).collect();
    let means: Vec<f64> = means.into_values().collect();
    match means.is_empty() {
        true => Ok(None),
        false => bootstrap::mean(&means, Some(&units(&texts))).map(Some),
    }
}

/// Of each item that has a step.
fn means(contents: &Contents) -> BTreeMap<&str, f64> {
    let mut items: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for ((item, _), step) in steps(contents).into_iter().flatten() {
        items.entry(item).or_default().extend(step.map(f64::from));
    }
    items.into_iter().filter_map(|(item, steps)| Some((item, mean(&steps)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{plan, start_with};
    use crate::record::QuestionText;

    /// The letters that were answered, by run, each to a question of its own.
    fn contents(out: &std::path::Path, answers: &[&[&str]]) -> Contents {
        asking(out, answers, |at| format!("How far is {at}?"))
    }

    fn asking(
        out: &std::path::Path,
        answers: &[&[&str]],
        question: impl Fn(usize) -> String,
    ) -> Contents {
        let mut plan = plan();
        (plan.runs, plan.dataset.format) = (answers.len() as u32, "scale".to_owned());
        let options = [('A', "1: wrong"), ('B', "4: so so"), ('C', "10: right")];
        let text = |at: usize| {
            ItemText::Question(QuestionText {
                item: at.to_string(),
                question: question(at),
                options: options.map(|(letter, text)| (letter, text.to_owned())).into(),
                ..QuestionText::default()
            })
        };
        let texts: Vec<ItemText> = (0..answers[0].len()).map(text).collect();
        let log = start_with(out, &plan, &texts);
        for (run, answers) in answers.iter().enumerate() {
            for (at, answer) in answers.iter().enumerate() {
                let line = AnswerLine {
                    dataset: "medqa".to_owned(),
                    run: run as u32,
                    item: at.to_string(),
                    answer: (*answer).to_owned(),
                    ..AnswerLine::default()
                };
                log.item(line).unwrap();
            }
        }
        log.finish().unwrap();
        Contents::read(out).unwrap()
    }

    #[test]
    fn what_has_no_step_is_counted_and_raises_no_mean() {
        let out = tempfile::tempdir().unwrap();
        let contents = contents(out.path(), &[&["C", "B", ""], &["C", "C", "J"]]);
        let figures = ScaleFigures::of(&contents).unwrap();
        assert_eq!((figures.reach, figures.n, figures.without), ([1, 10], 6, 2));
        assert_eq!(figures.mean.unwrap().per_run, [7.0, 10.0]);
        assert_eq!(figures.mean_at_least.unwrap().per_run, [5.0, 7.0]);
        assert_eq!(figures.given, [(4, 1), (10, 3)].into());
        let interval = interval(&contents).unwrap().unwrap();
        assert_eq!((interval.mean, interval.n_questions), (8.5, 2));
    }

    #[test]
    fn answers_of_several_runs_to_a_question_are_one_unit() {
        let judged =
            |at: usize| format!("Question: {}?\n\nAnswer to be judged: {at}\n\nHow far?", at % 2);
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = asking(one.path(), &[&["A", "B", "A", "C"]], judged);
        let other = asking(two.path(), &[&["C", "C", "A", "B"]], judged);
        let interval = interval(&first).unwrap().unwrap();
        assert_eq!((interval.n_questions, interval.n_units), (4, 2));
        let difference = difference(&first, &other).unwrap().unwrap();
        assert_eq!((difference.n_questions, difference.n_units), (4, 2));
    }

    #[test]
    fn two_runs_are_compared_by_the_items_that_both_have() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = contents(one.path(), &[&["A", "B", "C", ""]]);
        let other = contents(two.path(), &[&["C", "B", "", "C"]]);
        let difference = difference(&first, &other).unwrap().unwrap();
        assert_eq!((difference.mean, difference.n_questions), (4.5, 2));
    }

    #[test]
    fn where_nothing_could_be_read_there_is_no_mean() {
        let out = tempfile::tempdir().unwrap();
        let contents = contents(out.path(), &[&["", ""]]);
        let figures = ScaleFigures::of(&contents).unwrap();
        assert_eq!((figures.mean, figures.without), (None, 2));
        assert_eq!(figures.mean_at_least.unwrap().mean, 1.0);
        assert_eq!(interval(&contents).unwrap(), None);
    }
}
