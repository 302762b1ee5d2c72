//! The calls that every model is asked: free and constrained, short and long, greedy and sampled. Who changes one changes the sums of all
//! answers that are noted elsewhere.

use serde_json::json;

use crate::engine::{Grammar, Sampling};

/// Tokens of each completion, at most.
pub const MAX_TOKENS: usize = 32;
/// Calls that are asked at once: all of them.
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
}

/// All calls, in their order.
pub fn all() -> [Call; BATCH] {
    const FEVER: &str =
        "What are the commonest causes of fever after an operation? Answer in one sentence.";
    const DOSE: &str = "A man of 70 kg is to have 15 mg of paracetamol per kg. How much is that?";
    let call = |name, prompt: &str, sampling, grammar| {
        let prompt = prompt.to_owned();
        Call { name, prompt, sampling, seed: 1, grammar }
    };
    let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
    let sampled =
        Sampling { temperature: 0.7, top_k: Some(40), top_p: Some(0.95), ..Sampling::default() };
    let penalised =
        Sampling { min_p: Some(0.05), repetition_penalty: Some(1.2), ..Sampling::default() };
    let schema = json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "maxLength": 60},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["answer", "confidence"],
        "additionalProperties": false,
    });
    let schema = Grammar::JsonSchema(schema.to_string());
    let regex = Grammar::Regex("(Yes|No), because [a-z ]{4,80}\\.".to_owned());
    [
        call("greedy", FEVER, greedy, None),
        call("sampled", FEVER, sampled, None),
        call("penalised", DOSE, penalised, None),
        call("schema", DOSE, greedy, Some(schema)),
        call("regex", FEVER, sampled, Some(regex)),
        call("long", &chart(), sampled, None),
        call("short", "Hello", greedy, None),
        call("Chinese", "坏血病缺乏哪种维生素？", sampled, None),
    ]
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
