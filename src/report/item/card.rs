//! One call as a card: what the agent said, the parts of its record in a fixed order, and the text that it was read from.

use std::borrow::Cow;

use minijinja::context;
use minijinja::value::{Serde, Value as Shown};
use serde::Serialize;
use serde_json::Value;

use super::Correctness;
use super::prompts::user_message;
use crate::record::{CONTRADICTION, CallLine, FinishReason, NOT_AN_OPTION};

/// The highest fit score (MED-MAD, C.2).
const BEST_FIT: f64 = 5.0;

/// The known fields of a record with their titles and looks. Other fields follow under their own names.
const SECTIONS: [(&str, &str, Look); 16] = [
    ("/cot", "Reasoning", Look::Numbered),
    ("/thought", "Reasoning", Look::Text),
    ("/option_analysis", "Options", Look::Fits),
    ("/structured_reasoning/question_focus", "Question focus", Look::Text),
    ("/structured_reasoning/key_clues", "Key clues", Look::List),
    ("/structured_reasoning/elimination", "Eliminated", Look::List),
    ("/structured_reasoning/final_support", "Support", Look::Text),
    ("/counterfactual_check/if_chose_other", "If another were chosen", Look::Text),
    ("/counterfactual_check/confidence_after_check", "Confidence after this check", Look::Text),
    ("/debate_moves/main_point", "Main point", Look::Text),
    ("/debate_moves/challenge", "Challenges", Look::List),
    ("/debate_moves/accept", "Accepts", Look::List),
    ("/debate_moves/risk_check", "Risk", Look::Text),
    ("/result", "Sentence", Look::Text),
    ("/correction", "Correction", Look::Text),
    ("/assumed", "Not read; the run went on with", Look::Text),
];

/// Fields that are shown in the head of a card, as words or badges.
const IN_HEAD: [&str; 7] =
    ["answer", "confidence", "flag", "sentence_id", "notes", CONTRADICTION, NOT_AN_OPTION];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Look {
    Text,
    List,
    Numbered,
    /// Options with a score each.
    Fits,
}

/// The outcome of a call.
#[derive(Default, Serialize)]
pub struct Said<'a> {
    /// Whether the call was to give an answer.
    pub expected: bool,
    /// A letter, or a few words.
    pub words: String,
    pub verdict: Correctness,
    /// Whether the answer is a letter that the question does not offer.
    pub beyond: bool,
    pub confidence: String,
    pub weight: Option<String>,
    /// The agent's answer in the round before, where it was another.
    pub before: Option<&'a str>,
    /// The record's own answer, where normalisation made another of it.
    pub as_written: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
struct Section<'a> {
    title: Cow<'a, str>,
    look: Look,
    lines: Vec<Line<'a>>,
}

#[derive(Debug, Default, Serialize)]
struct Line<'a> {
    name: Cow<'a, str>,
    text: Cow<'a, str>,
    score: Cow<'a, str>,
    percent: u32,
    pros: Cow<'a, str>,
    cons: Cow<'a, str>,
}

/// The call as the template of cards takes it; `prompt` is the number of its prompt in the appendix. An agent who `is_arbiter`, and so was
/// given others' words, is shown with what it was asked.
pub fn card(call: &CallLine, said: &Said<'_>, prompt: usize, is_arbiter: bool) -> Shown {
    context! {
        agent => &call.agent,
        backbone => &call.backbone,
        // Whether it says two things that differ.
        contradicts => call.record.is_contradiction(),
        said => Serde(said),
        sections => Serde(sections(call.record.as_value())),
        shown => user_message(call).filter(|_| is_arbiter),
        purpose => &call.purpose,
        sample => call.sample,
        parse => Serde(call.parse),
        why => unread(call),
        cut_short => match call.finish_reason {
            FinishReason::Stop => None,
            FinishReason::Length => Some("cut at the token limit"),
            FinishReason::Constraint => Some("ended by the grammar"),
            FinishReason::Cancelled => Some("cancelled"),
            FinishReason::Refusal => Some("refused by the model"),
        },
        raw => &call.text,
        seed => call.seed,
        elapsed_ms => call.elapsed_ms,
        usage => Serde(call.usage),
        max_tokens => call.sampling.max_tokens,
        constrained => call.sampling.constrained,
        prompt,
    }
}

/// Why nothing was read of a reply of which nothing was.
fn unread(call: &CallLine) -> &'static str {
    match call.finish_reason {
        _ if call.record.is_contradiction() => "it says two things that exclude each other",
        _ if call.record.is_not_an_option() => "its letter is not among the options",
        FinishReason::Length => "its tokens ran out before it came to that",
        _ if call.text.trim().is_empty() => "it is empty",
        _ => "neither its form nor its words say it",
    }
}

fn sections(record: &Value) -> Vec<Section<'_>> {
    let known = SECTIONS.iter().filter_map(|(path, title, look)| {
        Some(section((*title).into(), *look, record.pointer(path)?))
    });
    let is_known = |name: &str| {
        let mut paths = SECTIONS.iter().map(|(path, ..)| path.split('/').nth(1));
        IN_HEAD.contains(&name) || paths.any(|first| first == Some(name))
    };
    let fields = record.as_object().into_iter().flatten();
    let others = fields
        .filter(|(name, _)| !is_known(name))
        .map(|(name, value)| section(name.into(), Look::Text, value));
    let sections = known.chain(others);
    sections.filter(|section| !section.lines.is_empty()).collect()
}

fn section<'a>(title: Cow<'a, str>, look: Look, value: &'a Value) -> Section<'a> {
    let lines: Vec<Line> = match look {
        Look::Text => vec![Line { text: told(value), ..Line::default() }],
        Look::List | Look::Numbered => entries(value).iter().map(line).collect(),
        Look::Fits => entries(value).iter().map(fit).collect(),
    };
    let says = |line: &Line| look == Look::Fits || !line.text.trim().is_empty();
    Section { title, look, lines: lines.into_iter().filter(says).collect() }
}

/// An entry of a list; an option that was ruled out stands before its reason.
fn line(entry: &Value) -> Line<'_> {
    match entry.get("dx_or_option") {
        Some(_) => Line {
            name: text(entry, "dx_or_option"),
            text: text(entry, "why_not"),
            ..Line::default()
        },
        None => Line { text: plain(entry), ..Line::default() },
    }
}

fn fit(entry: &Value) -> Line<'_> {
    let score = text(entry, "fit_score");
    let share = score.trim().parse::<f64>().unwrap_or(0.0) / BEST_FIT;
    Line {
        name: text(entry, "option"),
        text: Cow::Borrowed(""),
        percent: (share.clamp(0.0, 1.0) * 100.0) as u32,
        score,
        pros: text(entry, "pros"),
        cons: text(entry, "cons"),
    }
}

// A model's record is read leniently: any shape is readable, what is missing is empty.

/// A field's text; a number or a structure as compact JSON, a missing field or `null` as nothing.
pub fn text<'a>(record: &'a Value, field: &str) -> Cow<'a, str> {
    record.get(field).map(plain).unwrap_or_default()
}

/// A list's entries; a lone value counts as a list of one.
pub fn entries(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(entries) => entries,
        lone => std::slice::from_ref(lone),
    }
}

/// Any value as one text.
pub fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Any value as text for a reader: one line per entry of a list, an object's fields one after another.
pub fn told(value: &Value) -> Cow<'_, str> {
    let told_entries = |entries: &[Value], between: &str| {
        let entries: Vec<_> = entries.iter().map(told).collect();
        entries.join(between)
    };
    match value {
        Value::Array(entries) if entries.iter().any(|entry| !entry.is_string()) => {
            told_entries(entries, "\n").into()
        }
        Value::Array(entries) => told_entries(entries, ", ").into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", told(value)));
            fields.collect::<Vec<_>>().join("; ").into()
        }
        other => plain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_minimal_record_is_empty_and_a_foreign_one_is_listed() {
        assert!(sections(&json!({"answer": "A", "confidence": 0})).is_empty());
        assert!(sections(&json!({"answer": "A", "cot": [], "debate_moves": {}})).is_empty());
        assert!(sections(&Value::Null).is_empty());
        let foreign = json!({"answer": "A", "explanation": "because"});
        assert_eq!(sections(&foreign)[0].title, "explanation");
    }

    #[test]
    fn scores_of_any_kind_become_bars_within_bounds() {
        let percent = |score: Value| fit(&json!({"option": "A", "fit_score": score})).percent;
        assert_eq!(percent(json!(4)), 80);
        assert_eq!(percent(json!("3")), 60);
        assert_eq!(percent(json!(99)), 100);
        assert_eq!(percent(json!(-1)), 0);
        assert_eq!(percent(json!("high")), 0);
        assert_eq!(percent(json!("NaN")), 0);
    }

    #[test]
    fn an_option_stands_before_why_it_was_ruled_out() {
        let record = json!({"structured_reasoning": {"elimination": [{"dx_or_option": "A", "why_not": "no fever"}, "B"]}});
        let lines = &sections(&record)[0].lines;
        assert_eq!((&*lines[0].name, &*lines[0].text), ("A", "no fever"));
        assert_eq!((&*lines[1].name, &*lines[1].text), ("", "B"));
    }
}

#[cfg(test)]
mod read_tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_any_shape() {
        let record = json!({"a": "x", "b": 4, "c": null, "d": ["p", 2, "", null], "e": {"k": [1]}});
        assert_eq!(text(&record, "a"), "x");
        assert_eq!(text(&record, "b"), "4");
        assert_eq!(text(&record, "c"), "");
        assert_eq!(text(&record, "missing"), "");
        assert_eq!(text(&record, "e"), r#"{"k":[1]}"#);
        assert_eq!(entries(&record["d"]).len(), 4);
        assert_eq!(entries(&record["a"]), [json!("x")]);
        assert!(entries(&record["c"]).is_empty());
    }

    #[test]
    fn tells_lists_and_objects_in_words() {
        let experts = json!([{"role": "Cardiologist", "knows": ["hearts", "vessels"]}, {"role": "GP", "lead": true}]);
        assert_eq!(
            told(&experts),
            "role: Cardiologist; knows: hearts, vessels\nrole: GP; lead: true"
        );
        assert_eq!(told(&json!("x")), "x");
        assert_eq!(told(&json!(null)), "");
    }
}
