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

#[derive(Debug, Serialize)]
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

#[derive(Debug, Serialize)]
struct Section {
    title: String,
    look: Look,
    lines: Vec<Line>,
}

#[derive(Debug, Default, Serialize)]
struct Line {
    name: String,
    text: String,
    score: String,
    percent: u32,
    pros: String,
    cons: String,
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
        sections => Serde(sections(&call.record)),
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
fn sections(reply: &Reply) -> Vec<Section> {
    let mut sections = match reply.read() {
        Some(record) => debated(record),
        None => {
            let fields = reply.fields().filter(|(name, _)| !IN_HEAD.contains(name));
            fields.map(|(name, text)| Section::of(title(name), Look::Text, vec![text])).collect()
        }
    };
    sections.retain(|section| !section.lines.is_empty());
    sections
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

fn debated(record: Record) -> Vec<Section> {
    let StructuredReasoning { question_focus, key_clues, elimination, final_support } =
        record.structured_reasoning;
    let DebateMoves { main_point, challenge, accept, risk_check } = record.debate_moves;
    let check = record.counterfactual_check.unwrap_or_default();
    let after_check = check.confidence_after_check.map(|share| share.to_string());
    let fits = record.option_analysis.into_iter().map(|one| Line {
        name: one.option,
        score: one.fit_score.map_or(String::new(), |score| score.to_string()),
        percent: (one.fit_score.unwrap_or(0.0) / BEST_FIT * 100.0).clamp(0.0, 100.0) as u32,
        pros: one.pros,
        cons: one.cons,
        ..Line::default()
    });
    // An option that was ruled out stands before its reason.
    let eliminated = elimination.into_iter().map(|one| Line {
        name: one.dx_or_option,
        text: one.why_not,
        ..Line::default()
    });
    vec![
        Section::of("Reasoning", Look::Numbered, record.cot),
        Section { title: "Options".to_owned(), look: Look::Fits, lines: fits.collect() },
        Section::of("Question focus", Look::Text, vec![question_focus]),
        Section::of("Key clues", Look::List, key_clues),
        Section { title: "Eliminated".to_owned(), look: Look::List, lines: eliminated.collect() },
        Section::of("Support", Look::Text, vec![final_support]),
        Section::of("If another were chosen", Look::Text, vec![check.if_chose_other]),
        Section::of("Confidence after this check", Look::Text, after_check.into_iter().collect()),
        Section::of("Main point", Look::Text, vec![main_point]),
        Section::of("Challenges", Look::List, challenge),
        Section::of("Accepts", Look::List, accept),
        Section::of("Risk", Look::Text, vec![risk_check]),
    ]
}

impl Section {
    /// Of texts, but for blank ones.
    fn of(title: &str, look: Look, texts: Vec<String>) -> Section {
        let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
        let lines = texts.map(|text| Line { text, ..Line::default() }).collect();
        Section { title: title.to_owned(), look, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

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
        let shown = sections(&Reply::of(record(json!(4))));
        let titles: Vec<&str> = shown.iter().map(|one| one.title.as_str()).collect();
        assert_eq!(titles, ["Reasoning", "Options", "Eliminated"]);
        assert_eq!(shown[0].lines.len(), 1);
        let ruled_out = &shown[2].lines[0];
        assert_eq!((&*ruled_out.name, &*ruled_out.text), ("B", "no fever"));
    }

    #[test]
    fn scores_of_any_kind_become_bars_within_bounds() {
        for (score, percent) in [(json!(4), 80), (json!(99), 100), (json!(-1), 0), (Json::Null, 0)]
        {
            assert_eq!(sections(&Reply::of(record(score)))[1].lines[0].percent, percent);
        }
    }

    #[test]
    fn of_another_record_what_says_something_is_listed() {
        for nothing in [json!({"answer": "A", "confidence": 0}), json!({"cot": []}), Json::Null] {
            assert!(sections(&Reply::of(nothing)).is_empty());
        }
        let foreign = json!({"answer": "A", "explanation": "because", "thought": "so"});
        let shown = sections(&Reply::of(foreign));
        assert_eq!((&*shown[0].title, &*shown[1].title), ("explanation", "Reasoning"));
    }
}
