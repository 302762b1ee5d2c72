//! Votes of a prefix of the samples, with calls and tokens that are known.

use super::*;
use crate::analysis::outcomes::Outcomes;
use crate::experiment::contents::Contents;
use crate::experiment::fixtures;
use crate::recipe::fixtures::run_with;

const RECIPE: &str = r#"
title = "Own"
text = ""
runs = 2
decoding = "grammar"
panel = ["tiny"]
analyses = ["equal-budget"]
[[dataset]]
name = "medqa"
label = "MedQA"
file = "medqa.jsonl"
format = "medqa"
[[method]]
name = "debate"
label = "Debate"
group = ""
system = "medmad"
[[method]]
name = "samples"
label = "Samples"
group = ""
system = "self-consistency"
"#;

/// A run whose every question took these calls, each an agent, a sample and its tokens.
fn run(agents: &[&str], answers: &[&str], calls: &[(&str, u32, usize)]) -> Contents {
    let mut contents = run_with(|line| {
        line.rounds.truncate(1);
        line.rounds[0].agents = agents.iter().map(|agent| agent.to_string()).collect();
        line.rounds[0].answers = answers.iter().map(|answer| answer.to_string()).collect();
        line.rounds[0].weights.clear();
        line.gold = line.gold.as_ref().map(|_| "B".to_owned());
        line.correct = line.gold.as_ref().map(|_| true);
    });
    let items: Vec<(String, u32)> =
        contents.items.records.iter().map(|line| (line.item().to_owned(), line.run())).collect();
    let made = items.iter().flat_map(|(item, run)| {
        calls.iter().map(move |(agent, sample, tokens)| {
            let mut call = fixtures::call(item, *run, agent);
            call.sample = *sample;
            (call.usage.prompt_tokens, call.usage.completion_tokens) = (tokens - 1, 1);
            call
        })
    });
    contents.calls.records = made.collect();
    contents
}

/// The row of one agent's samples beside a debate that took `calls` calls of `tokens` each.
fn row(answers: &[&str], calls: u32, tokens: usize) -> BudgetRow {
    let debate: Vec<(&str, u32, usize)> = (0..calls).map(|call| ("ddx", call, tokens)).collect();
    let debate = run(&["ddx"], &["B"], &debate);
    let samples: Vec<(&str, u32, usize)> =
        (0..answers.len() as u32).map(|sample| ("solo", sample, 100)).collect();
    let samples = run(&vec!["solo"; answers.len()], answers, &samples);
    let recipe = Recipe::parse(RECIPE, "own.toml").unwrap();
    let cells = recipe.cells().zip([&debate, &samples]);
    let cells =
        cells.map(|(cell, contents)| CellOutcomes { cell, outcomes: Outcomes::of(contents) });
    let rows = budgets(&recipe, &cells.collect::<Vec<_>>());
    assert_eq!(rows.len(), 1);
    rows.into_iter().next().unwrap()
}

#[test]
fn as_many_samples_vote_as_the_debate_paid() {
    // A alone; then A and B, the first seen; then B by two of three.
    for (calls, expected) in [(1, 0.0), (2, 0.0), (3, 1.0), (4, 0.0)] {
        let row = row(&["A", "B", "B", "A"], calls, 100);
        assert_eq!(
            (row.calls.samples, row.calls.accuracy),
            (f64::from(calls), expected),
            "{calls}"
        );
        assert_eq!(row.calls.difference.mean, 1.0 - expected);
        assert_eq!(row.calls, row.tokens);
    }
}

#[test]
fn tokens_are_paid_apart_and_too_few_samples_are_told() {
    let row = row(&["B", "B", "A"], 2, 160);
    // 320 tokens pay three samples of 100.
    assert_eq!((row.calls.samples, row.tokens.samples), (2.0, 3.0));
    assert_eq!((row.calls.n_exhausted, row.tokens.n_exhausted), (0, 4));
    // A budget below one sample pays one.
    let row = self::row(&["B", "A"], 1, 5);
    assert_eq!((row.tokens.samples, row.tokens.accuracy, row.tokens.n_exhausted), (1.0, 1.0, 0));
}
