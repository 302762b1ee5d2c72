//! What each stage costs a note: calls, tokens, seconds, money (MedGuards, Table 10).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::figures::{Rows, table};
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::{Cell, Table};
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

/// Dollars for a million tokens, the paper's, of Gemini 2.0 Flash.
pub const PROMPT_PRICE: f64 = 0.10;
pub const COMPLETION_PRICE: f64 = 0.40;
pub const CACHED_PRICE: f64 = 0.025;

impl StageCost {
    /// Dollars a note.
    pub fn price(&self) -> f64 {
        let fresh = self.prompt_tokens - self.cached_tokens;
        let sum = fresh * PROMPT_PRICE
            + self.cached_tokens * CACHED_PRICE
            + self.completion_tokens * COMPLETION_PRICE;
        sum / 1e6
    }
}

/// Detection, localisation, correction and any other stages; then their sum.
pub fn stage_costs(outcomes: &Outcomes<'_>) -> Vec<StageCost> {
    let contents = outcomes.contents;
    let plan = &contents.plan;
    let notes = (plan.dataset.items.len() * plan.runs as usize) as f64;
    let mut sums: BTreeMap<(usize, &str), StageCost> = BTreeMap::new();
    // Of a note's calls in a round, the first ones run side by side, and so do the others; but each step waits for the one before it.
    let mut longest: BTreeMap<(&str, &str, u32, u32, bool, u32), u64> = BTreeMap::new();
    for call in &contents.calls.records {
        let purpose = call.purpose.as_str();
        let mut stages = NoteStage::VARIANTS.iter();
        let place = stages.position(|stage| stage.name() == purpose);
        let sum = sums.entry((place.unwrap_or(NoteStage::VARIANTS.len()), purpose)).or_default();
        purpose.clone_into(&mut sum.stage);
        sum.calls += 1;
        sum.prompt_tokens += call.usage.prompt_tokens as f64;
        sum.cached_tokens += call.usage.cached_tokens as f64;
        sum.completion_tokens += call.usage.completion_tokens as f64;
        let (is_first, step) =
            (call.stage == Stage::Initial, if purpose == "step" { call.sample } else { 0 });
        let key = (purpose, call.item.as_str(), call.run, call.round, is_first, step);
        let slowest = longest.entry(key).or_default();
        *slowest = call.elapsed_ms.max(*slowest);
    }
    let mut stages: Vec<StageCost> = sums.into_values().collect();
    for stage in &mut stages {
        // Whole numbers until here: no order of the calls changes a bit.
        stage.prompt_tokens /= notes;
        stage.cached_tokens /= notes;
        stage.completion_tokens /= notes;
        let of_stage = longest.iter().filter(|(key, _)| key.0 == stage.stage);
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

pub(super) fn cost_table(entries: Rows<'_>) -> Option<Table> {
    table("cost", "Cost per note, by stage (MedGuards, Table 10)", entries, |notes| Some(&notes.stages))
        .text("stage", |row| &row.stage)
        .number("calls in all", |row| row.calls)
        .under("per note")
        .number("seconds", |row| Cell::Number(row.latency_seconds, 2))
        .number("prompt tokens", |row| Cell::Number(row.prompt_tokens, 1))
        .number("of these cached", |row| Cell::Number(row.cached_tokens, 1))
        .number("completion tokens", |row| Cell::Number(row.completion_tokens, 1))
        .number("dollars", |row| Cell::Number(row.price(), 6))
        .note(format!(
            "Means over all notes × runs, including those that a stage did not see. Of calls that run in parallel the longest counts in seconds. Prices per million tokens: ${PROMPT_PRICE} prompt, ${COMPLETION_PRICE} completion, ${CACHED_PRICE} cached, MedGuards' (Gemini 2.0 Flash); not what this run's models cost."
        ))
        .unless_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::contents::Contents;
    use crate::experiment::fixtures;

    #[test]
    fn turns_and_steps_take_their_time_one_after_another_and_reviews_side_by_side() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("run");
        let log = fixtures::start(&path, &fixtures::plan());
        for (purpose, round, sample) in (0..2)
            .flat_map(|round| (0..3).flat_map(move |n| [("step", round, n), ("review", round, n)]))
        {
            let mut call = fixtures::call("q1", 1, "sym");
            (call.purpose, call.round, call.sample) = (purpose.to_owned(), round, sample);
            (call.stage, call.elapsed_ms) = (Stage::Aside, 600);
            log.call(call).unwrap();
        }
        log.finish().unwrap();
        let contents = Contents::read(&path).unwrap();
        let costs = stage_costs(&Outcomes::of(&contents));
        // Three items in two runs.
        let seconds =
            |stage: &str| costs.iter().find(|one| one.stage == stage).unwrap().latency_seconds;
        assert_eq!((seconds("step"), seconds("review")), (3.6 / 6.0, 1.2 / 6.0));
    }
}
