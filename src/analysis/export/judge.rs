//! Answers to open questions as questions for a judge, in the format `scale`: the question, its reference, the answer, and the steps of a
//! scale as options. Any system of questions is a judge, or a panel of them.
//!
//! The ten steps are those of MedAgentBoard's judge of PubMedQA, the two those of its judge of VQA-RAD, in our words. The lowest comes
//! first, for small models choose the first option more often than it is right.

use serde::Serialize;

use super::{ExportError, ExportedFile};
use crate::experiment::contents::Contents;
use crate::prompts::{PromptSet, fill};

/// What is shown where there is no answer.
const NOTHING: &str = "(no answer)";

/// A line of the file.
#[derive(Serialize)]
struct Question<'a> {
    id: String,
    question: String,
    options: Vec<&'a str>,
}

/// One question for each item and run, in the plan's order. An item without an answer is one, too: who leaves it out raises the mean.
///
/// # Errors
/// A run on other items, and a question without a reference.
pub fn file(contents: &Contents, scale: &str) -> Result<ExportedFile, ExportError> {
    let run = || contents.path.display().to_string();
    let prompts = PromptSet::embedded();
    let prompt = prompts.get("judge/question", &["question", "reference", "answer"])?;
    let steps = prompts.get(&format!("judge/{scale}"), &[])?;
    let plan = &contents.plan;
    let places = plan.dataset.items.iter().enumerate();
    let places: std::collections::HashMap<&str, usize> =
        places.map(|(place, id)| (id.as_str(), place)).collect();
    let mut lines: Vec<_> = contents.answers().into_values().collect();
    lines.sort_by_key(|line| (line.run, places.get(line.item.as_str())));
    let mut bytes = Vec::new();
    for line in lines {
        let Some(question) = contents.texts.get(&line.item).and_then(|text| text.open()) else {
            return Err(ExportError::NothingToJudge { run: run() });
        };
        let Some(reference) = &question.reference else {
            return Err(ExportError::NoReference { run: run(), item: line.item.clone() });
        };
        let answer = if line.answer.is_empty() { NOTHING } else { &line.answer };
        let values = [
            ("question", question.question.as_str()),
            ("reference", reference),
            ("answer", answer),
        ];
        let id = match plan.runs {
            1 => line.item.clone(),
            _ => format!("{}-run-{}", line.item, line.run),
        };
        let options = steps.lines().collect();
        let question = Question { id, question: fill(&prompt, &values), options };
        serde_json::to_writer(&mut bytes, &question).map_err(std::io::Error::from)?;
        bytes.push(b'\n');
    }
    if bytes.is_empty() {
        return Err(ExportError::NothingToJudge { run: run() });
    }
    Ok(ExportedFile { path: "judge.jsonl".to_owned(), bytes })
}
