//! One call as a card: what the agent said, the parts of its record, and the text that it was read from.

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::Correctness;
use crate::record::{CONTRADICTION, CallLine, FinishReason, NOT_AN_OPTION, Reply};
use crate::systems::medmad::record::{DebateMoves, Record, StructuredReasoning};

/// The highest fit score (MED-MAD, C.2).
const BEST_FIT: f64 = 5.0;

/// Fields that are shown in the head of a card, as words or badges.
const IN_HEAD: [&str; 7] =
    ["answer", "confidence", "flag", "sentence_id", "notes", CONTRADICTION, NOT_AN_OPTION];

/// The outcome of a call.
#[derive(Default, Serialize)]
pub struct Head<'a> {
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
    pub as_written: Option<&'a str>,
}

/// The call as the template of cards takes it; `prompt` is the number of its prompt in the appendix. An agent who `is_arbiter`, and so was
/// given others' words, is shown with what it was asked.
pub fn card(call: &CallLine, said: &Head<'_>, prompt: usize, is_arbiter: bool) -> Value {
    let asked = call.messages.iter().rfind(|message| message.role == "user");
    context! {
        agent => &call.agent,
        backbone => &call.backbone,
        // Whether it says two things that differ.
        contradicts => call.record.is_contradiction(),
        said => Serde(said),
        sections => sections(&call.record),
        shown => asked.map(|message| &message.content).filter(|_| is_arbiter),
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

/// MED-MAD's record by its parts; of any other each field that says something.
fn sections(reply: &Reply) -> Vec<Value> {
    let sections = match reply.read() {
        Some(record) => debated(record),
        None => {
            let fields = reply.fields().filter(|(name, _)| !IN_HEAD.contains(name));
            fields.map(|(name, text)| texts(title(name), "text", vec![text])).collect()
        }
    };
    sections.into_iter().flatten().collect()
}

/// What a field is called.
fn title(name: &str) -> &str {
    match name {
        "thought" => "Reasoning",
        "result" => "Sentence",
        "correction" => "Correction",
        "assumed" => "Not read; the run went on with",
        own => own,
    }
}

fn debated(record: Record) -> Vec<Option<Value>> {
    let StructuredReasoning { question_focus, key_clues, elimination, final_support } =
        record.structured_reasoning;
    let DebateMoves { main_point, challenge, accept, risk_check } = record.debate_moves;
    let check = record.counterfactual_check.unwrap_or_default();
    let after_check = check.confidence_after_check.map(|share| share.to_string());
    let fits = record.option_analysis.into_iter().map(|one| {
        context! {
            name => one.option,
            score => one.fit_score.map_or(String::new(), |score| score.to_string()),
            percent => (one.fit_score.unwrap_or(0.0) / BEST_FIT * 100.0).clamp(0.0, 100.0) as u32,
            pros => one.pros,
            cons => one.cons,
        }
    });
    // An option that was ruled out stands before its reason.
    let eliminated = elimination
        .into_iter()
        .map(|one| context! { name => one.dx_or_option, text => one.why_not });
    vec![
        texts("Reasoning", "numbered", record.cot),
        section("Options", "fits", fits.collect()),
        texts("Question focus", "text", vec![question_focus]),
        texts("Key clues", "list", key_clues),
        section("Eliminated", "list", eliminated.collect()),
        texts("Support", "text", vec![final_support]),
        texts("If another were chosen", "text", vec![check.if_chose_other]),
        texts("Confidence after this check", "text", after_check.into_iter().collect()),
        texts("Main point", "text", vec![main_point]),
        texts("Challenges", "list", challenge),
        texts("Accepts", "list", accept),
        texts("Risk", "text", vec![risk_check]),
    ]
}

/// A part of a record, as the template looks at it: a text, a list, a numbered one, or options with a score each. `None` of nothing.
fn section(title: &str, look: &str, lines: Vec<Value>) -> Option<Value> {
    (!lines.is_empty()).then(|| context! { title, look, lines })
}

/// The same of texts, but for blank ones.
fn texts(title: &str, look: &str, texts: Vec<String>) -> Option<Value> {
    let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
    section(title, look, texts.map(|text| context! { name => "", text }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn parts(record: Json) -> Vec<Json> {
        let shown = serde_json::to_value(sections(&Reply::of(record))).unwrap();
        shown.as_array().unwrap().clone()
    }

    fn record(score: Json) -> Json {
        json!({
            "cot": ["fever", " "], "answer": "A", "confidence": 0.5,
            "option_analysis": [{"option": "A", "pros": "", "cons": "", "fit_score": score}],
            "structured_reasoning": {
                "question_focus": "", "key_clues": [], "final_support": "",
                "elimination": [{"dx_or_option": "B", "why_not": "no fever"}],
            },
            "debate_moves": {"main_point": "", "challenge": [], "accept": [], "risk_check": ""},
        })
    }

    #[test]
    fn a_debates_record_is_shown_by_its_parts_and_an_option_before_why_it_was_ruled_out() {
        let shown = parts(record(json!(4)));
        let titles: Vec<&Json> = shown.iter().map(|one| &one["title"]).collect();
        assert_eq!(titles, ["Reasoning", "Options", "Eliminated"]);
        assert_eq!(shown[0]["lines"].as_array().unwrap().len(), 1);
        assert_eq!(shown[2]["lines"][0], json!({"name": "B", "text": "no fever"}));
    }

    #[test]
    fn scores_of_any_kind_become_bars_within_bounds() {
        for (score, percent) in [(json!(4), 80), (json!(99), 100), (json!(-1), 0), (Json::Null, 0)]
        {
            assert_eq!(parts(record(score))[1]["lines"][0]["percent"], percent);
        }
    }

    #[test]
    fn of_another_record_what_says_something_is_listed() {
        for nothing in [json!({"answer": "A", "confidence": 0}), json!({"cot": []}), Json::Null] {
            assert!(parts(nothing).is_empty());
        }
        let foreign = json!({"answer": "A", "explanation": "because", "thought": "so"});
        let shown = parts(foreign);
        assert_eq!([&shown[0]["title"], &shown[1]["title"]], ["explanation", "Reasoning"]);
    }
}
