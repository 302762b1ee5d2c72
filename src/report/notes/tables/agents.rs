//! The tables of the agents: who settled a stage, how sure the detectors are, what a stage costs.

use super::table;
use crate::analysis::notes::{Confidence, Consensus, LowPair, Prices, Settled, StageCost};
use crate::report::table::{Cell, Column, Kind, Row, Table};

pub fn consensus(stages: &[Consensus]) -> Table {
    let of_stage = |stage: &Consensus| {
        let row = |settled: &Settled| Row {
            group: stage.stage.to_string(),
            cells: vec![
                Cell::text(settled.source.in_words()),
                Cell::Count(settled.n),
                Cell::share(Some(settled.share)),
                Cell::Count(settled.n_right),
                Cell::Count(settled.n_wrong()),
                Cell::share(Some(settled.accuracy)),
            ],
        };
        stage.settled.iter().map(row).collect::<Vec<_>>()
    };
    table(
        "consensus",
        "Who settled it (Table 13)",
        vec![
            Column::new("settled by", Kind::Text),
            Column::new("notes × runs", Kind::Number),
            Column::new("share", Kind::Number),
            Column::new("right", Kind::Number),
            Column::new("wrong", Kind::Number),
            Column::new("share right", Kind::Number),
        ],
        stages.iter().flat_map(of_stage).collect(),
        &[
            "Shares are of the notes that the stage saw. In localisation a note without an error has no right sentence; the stage sees it where detection was wrong.",
        ],
    )
}

pub fn confidence(confidence: &Confidence) -> Table {
    let row = |label: &str, means: Option<[f64; 2]>| {
        let means = [0, 1].map(|agent| Cell::share(means.map(|pair| pair[agent])));
        Row::new([Cell::text(label)].into_iter().chain(means).collect())
    };
    let n = format!(
        "Means over the {} notes × runs on which both agreed.",
        confidence.n_agreed
    );
    table(
        "confidence",
        "How sure the detectors are (Table 16)",
        vec![
            Column::new("of these", Kind::Text),
            Column::new("first agent", Kind::Number),
            Column::new("second agent", Kind::Number),
        ],
        vec![
            row("all", confidence.all),
            row("right", confidence.right),
            row("wrong", confidence.wrong),
        ],
        &[&n],
    )
}

pub fn low_confidence(confidence: &Confidence) -> Table {
    let row = |low: &LowPair| {
        let share = |part: usize| (low.n > 0).then(|| part as f64 / low.n as f64);
        Row::new(vec![
            Cell::Text(format!("{:.2}", low.below)),
            Cell::Count(low.n),
            Cell::Count(low.n_agreed),
            Cell::share(share(low.n_agreed)),
            Cell::Count(low.n_right),
            Cell::share(share(low.n_right)),
        ])
    };
    table(
        "low-confidence",
        "When both detectors are unsure (Table 16)",
        vec![
            Column::new("both below", Kind::Text),
            Column::new("notes × runs", Kind::Number),
            Column::new("agreed", Kind::Number),
            Column::new("share agreed", Kind::Number),
            Column::new("right", Kind::Number),
            Column::new("share right", Kind::Number),
        ],
        confidence.low.iter().map(row).collect(),
        &["Right: the flag that came out, however it was settled."],
    )
}

pub fn cost(stages: &[StageCost], prices: &Prices) -> Table {
    let row = |stage: &StageCost| {
        Row::new(vec![
            Cell::text(&stage.stage),
            Cell::Count(stage.calls),
            Cell::Number(stage.latency_seconds, 2),
            Cell::Number(stage.prompt_tokens, 1),
            Cell::Number(stage.cached_tokens, 1),
            Cell::Number(stage.completion_tokens, 1),
            Cell::Number(stage.price(prices), 6),
        ])
    };
    let whose = match *prices == Prices::default() {
        true => ", the paper's (Gemini 2.0 Flash)",
        false => "",
    };
    let Prices {
        prompt,
        completion,
        cached,
    } = *prices;
    let prices = format!(
        "Prices for a million tokens: ${prompt} prompt, ${completion} completion, ${cached} cached{whose}; what this run's models cost is another matter."
    );
    table(
        "cost",
        "What a note costs, by stage (Table 10)",
        vec![
            Column::new("stage", Kind::Text),
            Column::new("calls in all", Kind::Number),
            Column::under("a note", "seconds", Kind::Number),
            Column::under("a note", "prompt tokens", Kind::Number),
            Column::under("a note", "of these cached", Kind::Number),
            Column::under("a note", "completion tokens", Kind::Number),
            Column::under("a note", "dollars", Kind::Number),
        ],
        stages.iter().map(row).collect(),
        &[
            "Means over all notes × runs, those that a stage did not see too. Of calls side by side the longest counts in seconds.",
            &prices,
        ],
    )
}
