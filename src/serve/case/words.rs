//! The outcome of a case as text and as JSON, and one line for each of its calls.

use serde_json::{Value, json};

use crate::analysis::notes::Finding;
use crate::analysis::say::reply_in_words;
use crate::data::{Item, ItemKind};
use crate::experiment::case::Worked;
use crate::record::{AnswerLine, CallLine, ItemLine};
use crate::text::ellipsis;

/// The most characters of an agent's reasons on a line.
const SHOWN_CHARS: usize = 200;
const NOTICE: &str = "Decision support under evaluation, not for care. Language models are wrong at times, and sure of it.";

/// A call as a line, such as `round 1 · ddx (gemma3-4b): B, 0.85 — the reasons`.
fn line(kind: ItemKind, call: &CallLine) -> String {
    let place = match kind {
        ItemKind::Questions => format!("round {}", call.round),
        ItemKind::Notes if call.round == 0 => call.purpose.clone(),
        ItemKind::Notes => format!("{}, round {}", call.purpose, call.round),
    };
    // The reasons on one line; the whole text if there are none.
    let one_line = || call.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let reasons = call.record.trajectory().unwrap_or_else(one_line);
    let confidence = call.record.confidence().map(|share| format!("{share:.2}"));
    let said: Vec<String> = reply_in_words(&call.record).into_iter().chain(confidence).collect();
    let dash = if said.is_empty() { "" } else { " — " };
    let (said, reasons) = (said.join(", "), ellipsis(&reasons, SHOWN_CHARS));
    format!("{place} · {} ({}): {said}{dash}{reasons}\n", call.agent, call.backbone)
}

/// The lines of all calls, in the order of their keys.
pub fn reasoning(kind: ItemKind, worked: &Worked) -> String {
    let mut calls: Vec<&CallLine> = worked.calls.iter().collect();
    calls.sort_by_cached_key(|call| call.key());
    calls.into_iter().map(|call| line(kind, call)).collect()
}

/// The outcome as the answer of a chat.
pub fn content(item: &Item, worked: &Worked) -> String {
    match &worked.line {
        ItemLine::Note(line) => Finding::of(line, &worked.calls, &worked.searches).text(),
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
        ItemLine::Note(line) => json!(Finding::of(line, &worked.calls, &worked.searches)),
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
    use crate::record::{Reply, Usage};

    fn call(agent: &str, round: u32, record: Value, text: &str) -> CallLine {
        let value = json!({
            "seq": 0, "dataset": "serve", "run": 1, "item": "q", "agent": agent, "round": round, "purpose": "debate",
            "sample": 0, "stage": "initial", "backbone": "gemma3-4b", "request": "", "messages": [],
            "sampling": {"temperature": 0.0, "top_k": null, "top_p": null, "min_p": null, "repetition_penalty": null,
                "max_tokens": 1, "constrained": false},
            "seed": 1, "text": text, "tokens": [], "record": record, "parse": "ok",
            "usage": {"prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1, "forced_tokens": 0},
            "finish_reason": "stop", "elapsed_ms": 1, "prev": "", "hash": "",
        });
        serde_json::from_value(value).unwrap()
    }

    fn worked(line: AnswerLine) -> Worked {
        let said = json!({"answer": "B", "confidence": 0.85, "cot": ["Look.", "Then  decide."]});
        let calls = vec![call("sym", 0, json!({}), "I plan\nto ask."), call("ddx", 1, said, "{}")];
        let (searches, usage) = (Vec::new(), Usage::default());
        Worked { line: line.into(), calls, searches, usage }
    }

    #[test]
    fn a_call_is_one_line_whatever_it_was_to_say() {
        let text = reasoning(ItemKind::Questions, &worked(AnswerLine::default()));
        assert_eq!(
            text,
            "round 1 · ddx (gemma3-4b): B, 0.85 — Look. Then decide.\nround 0 · sym (gemma3-4b): I plan to ask.\n"
        );
        let long = call("det1", 0, json!({"flag": true, "thought": "é".repeat(300)}), "");
        let long = line(ItemKind::Notes, &long);
        assert!(long.starts_with("debate · det1 (gemma3-4b): an error — é"), "{long}");
        assert!(long.ends_with("é…\n"));
        assert_eq!(
            reply_in_words(&Reply::of(json!({"is_error": true, "sentence_id": 1}))).as_deref(),
            Some("an error in sentence 2")
        );
        assert_eq!(
            reply_in_words(&Reply::of(json!({"result": "NAN"}))).as_deref(),
            Some("no sentence")
        );
        assert_eq!(reply_in_words(&Reply::of(json!({"answer": ""}))), None);
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
