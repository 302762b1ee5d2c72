//! One call as a card: a doctor's record in a fixed order of fields, and the text it was read from.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::case::Verdict;
use super::made::Made;
use super::panel::role_title;
use super::read::{entries, plain, text, texts, told};
use crate::record::CallLine;

/// The fields of MED-MAD's record (C.2); a record's other fields are listed by name.
const FIELDS: [&str; 7] = [
    "cot",
    "answer",
    "confidence",
    "option_analysis",
    "structured_reasoning",
    "counterfactual_check",
    "debate_moves",
];

/// The highest fit score (C.2).
const BEST_FIT: f64 = 5.0;

#[derive(Serialize)]
pub struct Card<'a> {
    agent: &'a str,
    role: Option<&'static str>,
    backbone: &'a str,
    said: Said<'a>,
    /// The record's own answer, where normalisation made another of it.
    as_written: Option<Cow<'a, str>>,
    record: Record<'a>,
    made: Made<'a>,
}

/// What a call came to in its round's vote.
#[derive(Serialize)]
pub struct Said<'a> {
    /// Whether the call was to give an answer.
    pub expected: bool,
    pub answer: Cow<'a, str>,
    pub verdict: Verdict,
    /// Whether the answer is a letter that the question does not offer.
    pub beyond: bool,
    pub confidence: String,
    pub weight: Option<String>,
    /// The member's answer in the round before, where it was another.
    pub before: Option<&'a str>,
}

#[derive(Serialize)]
struct Record<'a> {
    empty: bool,
    cot: Vec<Cow<'a, str>>,
    options: Vec<Fit<'a>>,
    focus: Cow<'a, str>,
    clues: Vec<Cow<'a, str>>,
    eliminated: Vec<Pair<'a>>,
    support: Cow<'a, str>,
    if_other: Cow<'a, str>,
    confidence_after: Cow<'a, str>,
    main_point: Cow<'a, str>,
    challenge: Vec<Cow<'a, str>>,
    accept: Vec<Cow<'a, str>>,
    risk: Cow<'a, str>,
    others: Vec<Pair<'a>>,
}

#[derive(Serialize)]
struct Fit<'a> {
    letter: Cow<'a, str>,
    score: Cow<'a, str>,
    percent: u32,
    pros: Cow<'a, str>,
    cons: Cow<'a, str>,
}

#[derive(Serialize)]
struct Pair<'a> {
    name: Cow<'a, str>,
    text: Cow<'a, str>,
}

impl<'a> Card<'a> {
    /// The card of a call, `prompt` being the number of its prompt in the appendix.
    pub fn new(call: &'a CallLine, said: Said<'a>, prompt: usize) -> Card<'a> {
        let written = text(&call.record, "answer");
        Card {
            agent: &call.agent,
            role: role_title(&call.agent),
            backbone: &call.backbone,
            as_written: Some(written).filter(|w| *w != said.answer && !w.is_empty()),
            said,
            record: Record::new(&call.record),
            made: Made::new(call, prompt),
        }
    }
}

impl<'a> Record<'a> {
    fn new(record: &'a Value) -> Record<'a> {
        let reasoning = &record["structured_reasoning"];
        let check = &record["counterfactual_check"];
        let moves = &record["debate_moves"];
        let mut view = Record {
            empty: false,
            cot: texts(record, "cot"),
            options: entries(record, "option_analysis")
                .iter()
                .map(Fit::new)
                .collect(),
            focus: text(reasoning, "question_focus"),
            clues: texts(reasoning, "key_clues"),
            eliminated: entries(reasoning, "elimination")
                .iter()
                .map(elimination)
                .collect(),
            support: text(reasoning, "final_support"),
            if_other: text(check, "if_chose_other"),
            confidence_after: text(check, "confidence_after_check"),
            main_point: text(moves, "main_point"),
            challenge: texts(moves, "challenge"),
            accept: texts(moves, "accept"),
            risk: text(moves, "risk_check"),
            others: others(record),
        };
        view.empty = view.is_empty();
        view
    }

    /// Whether nothing but the answer is there to be read.
    fn is_empty(&self) -> bool {
        let single = [
            &self.focus,
            &self.support,
            &self.if_other,
            &self.main_point,
            &self.risk,
        ];
        let lists = [&self.cot, &self.clues, &self.challenge, &self.accept];
        single.iter().all(|text| text.is_empty())
            && lists.iter().all(|list| list.is_empty())
            && self.options.is_empty()
            && self.eliminated.is_empty()
            && self.others.is_empty()
    }
}

impl<'a> Fit<'a> {
    fn new(entry: &'a Value) -> Fit<'a> {
        let score = text(entry, "fit_score");
        let share = score.trim().parse::<f64>().unwrap_or(0.0) / BEST_FIT;
        Fit {
            letter: text(entry, "option"),
            percent: (share.clamp(0.0, 1.0) * 100.0) as u32,
            score,
            pros: text(entry, "pros"),
            cons: text(entry, "cons"),
        }
    }
}

fn elimination(entry: &Value) -> Pair<'_> {
    match entry {
        Value::Object(_) => Pair {
            name: text(entry, "dx_or_option"),
            text: text(entry, "why_not"),
        },
        other => Pair {
            name: Cow::Borrowed(""),
            text: plain(other),
        },
    }
}

fn others(record: &Value) -> Vec<Pair<'_>> {
    let fields = record.as_object().into_iter().flatten();
    let unknown = fields.filter(|(name, _)| !FIELDS.contains(&name.as_str()));
    unknown
        .map(|(name, value)| Pair {
            name: Cow::Borrowed(name),
            text: told(value),
        })
        .filter(|pair| !pair.text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_minimal_record_is_empty_and_a_foreign_one_is_listed() {
        assert!(Record::new(&json!({"answer": "A", "confidence": 0})).is_empty());
        assert!(Record::new(&json!({"answer": "A", "cot": [], "debate_moves": {}})).is_empty());
        assert!(Record::new(&Value::Null).is_empty());
        let foreign = json!({"answer": "A", "explanation": "because"});
        let foreign = Record::new(&foreign);
        assert!(!foreign.is_empty());
        assert_eq!(foreign.others[0].name, "explanation");
    }

    #[test]
    fn scores_of_any_kind_become_bars_within_bounds() {
        let percent = |score: Value| Fit::new(&json!({"option": "A", "fit_score": score})).percent;
        assert_eq!(percent(json!(4)), 80);
        assert_eq!(percent(json!("3")), 60);
        assert_eq!(percent(json!(99)), 100);
        assert_eq!(percent(json!(-1)), 0);
        assert_eq!(percent(json!("high")), 0);
        assert_eq!(percent(json!("NaN")), 0);
    }
}
