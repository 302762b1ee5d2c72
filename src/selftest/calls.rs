//! The sixteen calls that every model is asked: free and constrained, short and long, alone and eight at once, greedy and sampled.

use serde_json::json;

use crate::digest::sha256;
use crate::engine::{Grammar, Sampling};

/// Tokens of each completion, at most.
pub const MAX_TOKENS: usize = 32;
/// Calls that are asked at once.
pub const BATCH: usize = 8;
/// Lines of the long prompt: more tokens than any sliding window of these models holds.
const LONG_LINES: u32 = 48;

/// One call.
pub struct Call {
    pub name: &'static str,
    /// The user's message.
    pub prompt: String,
    pub sampling: Sampling,
    pub seed: u64,
    pub grammar: Option<Grammar>,
    /// Whether it is asked at once with others, when it is compared with a golden file.
    pub together: bool,
}

/// All calls, in their order.
pub fn all() -> Vec<Call> {
    const FEVER: &str =
        "What are the commonest causes of fever after an operation? Answer in one sentence.";
    const DOSE: &str = "A man of 70 kg is to have 15 mg of paracetamol per kg. How much is that?";
    let alone = |name, prompt: &str, sampling, grammar| Call {
        name,
        prompt: prompt.to_owned(),
        sampling,
        seed: 1,
        grammar,
        together: false,
    };
    let mut calls = vec![
        alone("greedy", FEVER, greedy(), None),
        alone("sampled", FEVER, sampled(), None),
        alone("penalised", DOSE, penalised(), None),
        alone("schema, greedy", DOSE, greedy(), Some(schema())),
        alone("schema, sampled", FEVER, sampled(), Some(schema())),
        alone("regex, sampled", FEVER, sampled(), Some(regex())),
        alone("long, greedy", &chart(), greedy(), None),
        alone("long, sampled", &chart(), sampled(), None),
    ];
    calls.extend(batch());
    calls
}

/// Eight calls of different lengths, every other one greedy, two of them constrained.
fn batch() -> Vec<Call> {
    const QUESTIONS: [(&str, &str); BATCH] = [
        ("batch 1", "Name one contraindication of metformin."),
        (
            "batch 2",
            "Is amoxicillin safe for a patient who is allergic to penicillin? Say yes or no, then why.",
        ),
        ("batch 3", "Hello"),
        ("batch 4", "Put in order: take a history, examine, order a blood count, treat."),
        (
            "batch 5",
            "A girl of six has had a barking cough since last night and is hoarse. She drinks well, has no fever, \
                     and her chest is clear. What is the likeliest diagnosis, and what would you do first?",
        ),
        ("batch 6", "Welches Vitamin fehlt bei Skorbut?"),
        ("batch 7", "Which of these is an opioid: ibuprofen, tramadol, metamizole?"),
        ("batch 8", "坏血病缺乏哪种维生素？"),
    ];
    let call = |((name, prompt), seed): (&(&'static str, &str), u64)| Call {
        name,
        prompt: (*prompt).to_owned(),
        sampling: if seed % 2 == 1 { greedy() } else { sampled() },
        seed,
        grammar: match seed {
            2 => Some(regex()),
            5 => Some(schema()),
            _ => None,
        },
        together: true,
    };
    QUESTIONS.iter().zip(1..).map(call).collect()
}

/// A sum over everything that the calls ask for: golden files of other calls cannot be compared with.
pub fn sum(calls: &[Call]) -> String {
    let described = calls.iter().map(|call| {
        let Sampling { temperature, top_k, top_p, min_p, repetition_penalty, .. } = call.sampling;
        let grammar = match &call.grammar {
            None => json!(null),
            Some(Grammar::JsonObject) => json!("json"),
            Some(Grammar::JsonSchema(text)) => json!({"schema": text}),
            Some(Grammar::Regex(text)) => json!({"regex": text}),
            Some(Grammar::Lark(text)) => json!({"lark": text}),
        };
        json!([
            call.name,
            call.prompt,
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            call.seed,
            grammar,
            call.together,
            MAX_TOKENS,
        ])
    });
    sha256(described.map(|call| format!("{call}\n")).collect::<String>())
}

fn greedy() -> Sampling {
    Sampling { temperature: 0.0, ..Sampling::default() }
}

fn sampled() -> Sampling {
    Sampling { temperature: 0.7, top_k: Some(40), top_p: Some(0.95), ..Sampling::default() }
}

fn penalised() -> Sampling {
    Sampling { min_p: Some(0.05), repetition_penalty: Some(1.2), ..Sampling::default() }
}

fn schema() -> Grammar {
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "maxLength": 60},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["answer", "confidence"],
        "additionalProperties": false,
    });
    Grammar::JsonSchema(schema.to_string())
}

fn regex() -> Grammar {
    Grammar::Regex("(Yes|No), because [a-z ]{4,80}\\.".to_owned())
}

/// Vital signs of many days, and a question on them.
fn chart() -> String {
    let line = |day: u32| {
        format!(
            "Day {day}: temperature {}.{}, pulse {}, blood pressure {}/{}, saturation {} %, urine {} ml.\n",
            36 + day * 7 % 3,
            day * 3 % 10,
            60 + day * 11 % 50,
            105 + day * 13 % 40,
            60 + day * 5 % 25,
            92 + day * 2 % 8,
            800 + day * 137 % 1200,
        )
    };
    let days: String = (1..=LONG_LINES).map(line).collect();
    format!("{days}On which day was the pulse highest?")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sixteen_calls_of_every_kind() {
        let calls = all();
        assert_eq!(calls.len(), 16);
        assert_eq!(calls.iter().filter(|call| call.together).count(), BATCH);
        assert_eq!(calls.iter().map(|call| call.name).collect::<BTreeSet<_>>().len(), 16);
        let constrained = calls.iter().filter(|call| call.grammar.is_some()).count();
        let greedy = calls.iter().filter(|call| call.sampling.temperature == 0.0).count();
        assert_eq!((constrained, greedy), (5, 7));
    }

    /// A change of any call makes all golden files that are out there useless: let it be on purpose.
    #[test]
    fn the_sum_changes_with_a_call() {
        let mut calls = all();
        let before = sum(&calls);
        calls[3].seed += 1;
        assert_ne!(sum(&calls), before);
    }
}
