//! The outcome of a case as text and as JSON.

use serde_json::{Value, json};

use crate::analysis::notes::Finding;
use crate::data::Item;
use crate::experiment::case::Worked;
use crate::record::{AnswerLine, ItemLine};

const NOTICE: &str = "Decision support under evaluation, not for care. Language models are wrong at times, and sure of it.";

/// The outcome as the answer of a chat.
pub fn content(item: &Item, worked: &Worked) -> String {
    match &worked.line {
        ItemLine::Note(line) => Finding::of(line, &worked.calls).text(),
        ItemLine::Answer(line) => answer_text(item, line),
    }
}

fn answer_text(item: &Item, line: &AnswerLine) -> String {
    let mut parts = Vec::new();
    match option_of(item, line) {
        Some(option) => {
            parts.push(format!("ANSWER: {}", line.answer));
            let stated = line.team_confidence.map(|sure| format!("\nTeam confidence: {sure:.2}"));
            parts.push(format!("{option}{}", stated.unwrap_or_default()));
        }
        None => parts.push("No answer: what the agents said could not be read.".to_owned()),
    }
    if !line.rationale.trim().is_empty() {
        parts.push(line.rationale.trim().to_owned());
    }
    parts.push(NOTICE.to_owned());
    parts.join("\n\n")
}

/// The text of the option that was answered.
fn option_of<'a>(item: &'a Item, line: &AnswerLine) -> Option<&'a str> {
    item.question()?.option(line.answer.chars().next()?)
}

/// The outcome as JSON: of a note in the form of `check --json`, of a question the answer of a chat.
pub fn outcome(item: &Item, worked: &Worked) -> Value {
    match &worked.line {
        ItemLine::Note(line) => json!(Finding::of(line, &worked.calls)),
        ItemLine::Answer(line) => answer_text(item, line).into(),
    }
}

/// The line of `items.jsonl`, without its place in a chain.
pub fn record(line: &ItemLine) -> Value {
    let mut value = json!(line);
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("prev");
        fields.shift_remove("hash");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Choice;
    use crate::experiment::case::question;

    fn worked(line: AnswerLine) -> Worked {
        Worked::of(line.into(), Vec::new())
    }

    #[test]
    fn the_answer_stands_on_the_first_line() {
        let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
        let item = question("Which?", [('A', "one"), ('B', "two")].map(choice).to_vec());
        let line = AnswerLine {
            answer: "B".into(),
            team_confidence: Some(0.7),
            rationale: "Since two.".into(),
            ..AnswerLine::default()
        };
        let text = content(&item, &worked(line.clone()));
        assert!(
            text.starts_with(
                "ANSWER: B\n\ntwo\nTeam confidence: 0.70\n\nSince two.\n\nDecision support"
            ),
            "{text}"
        );
        let nothing = content(&item, &worked(AnswerLine::default()));
        assert!(nothing.starts_with("No answer:"), "{nothing}");
        assert_eq!(outcome(&item, &worked(line.clone())), text);
        let bare = record(&line.into());
        assert!(
            bare.get("hash").is_none() && bare.get("prev").is_none() && bare["kind"] == "question"
        );
    }
}
