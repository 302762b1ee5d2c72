//! What each stage costs a note: calls, tokens, seconds, money (MedGuards, Table 10).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::analysis::outcomes::Outcomes;
use crate::record::{NoteStage, Stage};

/// One stage, over all notes and runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageCost {
    /// A call's purpose; `all` for their sum.
    pub stage: String,
    pub calls: usize,
    /// Means over the notes of all runs, those that the stage did not see too.
    pub prompt_tokens: f64,
    pub cached_tokens: f64,
    pub completion_tokens: f64,
    /// From the first submission of the stage to its last completion: of its calls side by side the longest counts, of those one after
    /// the other each.
    pub latency_seconds: f64,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub prompt: f64,
    pub completion: f64,
    pub cached: f64,
}

impl Default for Prices {
    /// The paper's, of Gemini 2.0 Flash.
    fn default() -> Prices {
        Prices { prompt: 0.10, completion: 0.40, cached: 0.025 }
    }
}

impl StageCost {
    /// Dollars a note.
    pub fn price(&self, prices: &Prices) -> f64 {
        let fresh = self.prompt_tokens - self.cached_tokens;
        let sum = fresh * prices.prompt
            + self.cached_tokens * prices.cached
            + self.completion_tokens * prices.completion;
        sum / 1e6
    }
}

/// Detection, localisation, correction, whatever else there is; then their sum.
pub fn stage_costs(outcomes: &Outcomes<'_>) -> Vec<StageCost> {
    let contents = outcomes.contents;
    let plan = &contents.plan;
    let notes = (plan.dataset.items.len() * plan.runs as usize) as f64;
    let mut sums: BTreeMap<(usize, &str), StageCost> = BTreeMap::new();
    // Of a stage's calls on a note, those of one stage and round run side by side.
    let mut longest: BTreeMap<(&str, u32, &str, bool), u64> = BTreeMap::new();
    for call in &contents.calls.records {
        let purpose = call.purpose.as_str();
        let mut stages = NoteStage::ALL.iter();
        let place = stages.position(|stage| stage.name() == purpose);
        let sum = sums.entry((place.unwrap_or(NoteStage::ALL.len()), purpose)).or_default();
        purpose.clone_into(&mut sum.stage);
        sum.calls += 1;
        sum.prompt_tokens += call.usage.prompt_tokens as f64;
        sum.cached_tokens += call.usage.cached_tokens as f64;
        sum.completion_tokens += call.usage.completion_tokens as f64;
        let is_first = call.stage == Stage::Initial;
        let slowest = longest.entry((&call.item, call.run, purpose, is_first)).or_default();
        *slowest = call.elapsed_ms.max(*slowest);
    }
    let mut stages: Vec<StageCost> = sums.into_values().collect();
    for stage in &mut stages {
        // Whole numbers until here: no order of the calls changes a bit.
        stage.prompt_tokens /= notes;
        stage.cached_tokens /= notes;
        stage.completion_tokens /= notes;
        let of_stage = longest.iter().filter(|(key, _)| key.2 == stage.stage);
        let elapsed_ms: u64 = of_stage.map(|(_, elapsed_ms)| elapsed_ms).sum();
        stage.latency_seconds = elapsed_ms as f64 / 1000.0 / notes;
    }
    if !stages.is_empty() {
        let all = stages.iter().fold(StageCost::default(), |mut all, stage| {
            all.calls += stage.calls;
            all.prompt_tokens += stage.prompt_tokens;
            all.cached_tokens += stage.cached_tokens;
            all.completion_tokens += stage.completion_tokens;
            all.latency_seconds += stage.latency_seconds;
            all
        });
        stages.push(StageCost { stage: "all".to_owned(), ..all });
    }
    stages
}
