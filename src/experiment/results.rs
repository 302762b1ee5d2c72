//! `results.json`: the figures of a finished run, and the heads that fix all its bytes.
//!
//! Every figure but `elapsed_ms` and `finished_at` follows from the plan and the logs. `head` is the lower-case hex
//! sha256 over the file's bytes with `,\n  "head": "…"` taken out, so that it alone covers plan, logs and figures.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::clock;
use super::contents::Contents;
use super::error::RunError;
use super::private_file;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{CorrectionScorer, NoteFigures};
use crate::analysis::outcomes::Outcomes;
use crate::digest::sha256;
use crate::record::ItemKey;
use crate::record::{ItemLine, Parse, SCHEMA};

/// The file's name in the run directory.
pub const FILE: &str = "results.json";

/// The figures of a run. Where an item has several lines, the last one counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub schema: u32,
    pub system: String,
    pub dataset: String,
    /// Questions or notes, with and without gold.
    pub n_items: usize,
    /// Those without gold, which no accuracy counts.
    pub n_without_gold: usize,
    pub n_runs: u32,
    /// Items that errored, over all runs; each is wrong in the accuracy.
    pub n_errors: usize,
    /// Of answers, or of flags on notes; `null` where nothing has gold.
    pub accuracy: Option<OverRuns>,
    pub calls: usize,
    pub tokens: Tokens,
    pub parse: ParseCounts,
    /// Votes that were tied, over all runs.
    pub ties: usize,
    /// Over the questions of all runs that did not error; `null` where there is none.
    pub mean_rounds_run: Option<f64>,
    /// Of a run on notes, without what learned measures say; absent of one on questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<NoteFigures>,
    /// Wall time of the session that finished the run; an interrupted one before it is not in it. Of a merged
    /// run, the sum of its shards'.
    pub elapsed_ms: u64,
    /// UTC, RFC 3339.
    pub finished_at: String,
    pub heads: Heads,
    pub head: String,
}

/// Tokens of all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub prompt: usize,
    /// Of the prompts, found in the prefix index.
    pub cached: usize,
    pub completion: usize,
    /// Of the completions, dictated by the constraint and never sampled.
    pub forced: usize,
}

/// How the records were read, over all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParseCounts {
    pub ok: usize,
    pub repaired: usize,
    pub fallback: usize,
    /// Calls that the model declined.
    pub refused: usize,
}

/// The sha256 of plan.toml, and each log's last hash with its count of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heads {
    pub plan: String,
    pub calls: String,
    pub items: String,
    pub call_lines: u64,
    pub item_lines: u64,
}

impl Results {
    /// Reads a finished run back from its directory and writes its results.json.
    pub fn write(directory: &Path, elapsed_ms: u64) -> Result<Results, RunError> {
        let contents = Contents::read(directory)?;
        let results = Results::of(&contents, elapsed_ms, clock::utc_now())?;
        private_file::write(&directory.join(FILE), results.text()?.as_bytes())?;
        Ok(results)
    }

    /// Computes the figures of a run; errors when a planned item has no line.
    pub fn of(
        contents: &Contents,
        elapsed_ms: u64,
        finished_at: String,
    ) -> Result<Results, RunError> {
        let plan = &contents.plan;
        let outcomes = contents.outcomes();
        refuse_unfinished(contents, &outcomes)?;

        let mut verdicts: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
        let mut without_gold = HashSet::new();
        for (key, record) in &outcomes {
            match record.correct() {
                Some(is_right) => verdicts.entry(key.run).or_default().push(is_right),
                None => {
                    without_gold.insert(&key.item);
                }
            }
        }
        let verdicts: Vec<Vec<bool>> = verdicts.into_values().collect();

        let answers = contents.answers();
        let answered = answers.values().filter(|record| record.error.is_none());
        let rounds: Vec<u32> = answered.map(|record| record.rounds_run).collect();
        let mean_rounds_run = (!rounds.is_empty()).then(|| {
            let sum: u64 = rounds.iter().copied().map(u64::from).sum();
            sum as f64 / rounds.len() as f64
        });

        let mut tokens = Tokens::default();
        let mut parse = ParseCounts::default();
        for call in &contents.calls.records {
            tokens.prompt += call.usage.prompt_tokens;
            tokens.cached += call.usage.cached_tokens;
            tokens.completion += call.usage.completion_tokens;
            tokens.forced += call.usage.forced_tokens;
            match call.parse {
                Parse::Ok => parse.ok += 1,
                Parse::Repaired => parse.repaired += 1,
                Parse::Fallback => parse.fallback += 1,
                Parse::Refused => parse.refused += 1,
            }
        }

        let mut results = Results {
            schema: SCHEMA,
            system: plan.system.clone(),
            dataset: plan.dataset.name.clone(),
            n_items: plan.dataset.items.len(),
            n_without_gold: without_gold.len(),
            n_runs: plan.runs,
            n_errors: outcomes.values().filter(|r| r.error().is_some()).count(),
            accuracy: OverRuns::of_shares(&verdicts),
            calls: contents.calls.records.len(),
            tokens,
            parse,
            ties: answers.values().filter(|record| record.tie).count(),
            mean_rounds_run,
            notes: note_figures(contents),
            elapsed_ms,
            finished_at,
            heads: contents.heads(),
            head: String::new(),
        };
        results.head = results.computed_head()?;
        Ok(results)
    }

    /// The bytes of results.json.
    pub(super) fn text(&self) -> Result<String, RunError> {
        let json = serde_json::to_string_pretty(self).map_err(|error| RunError::Unloggable {
            what: FILE.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(json + "\n")
    }

    pub(super) fn computed_head(&self) -> Result<String, RunError> {
        let field = format!(",\n  \"head\": \"{}\"\n}}\n", self.head);
        let text = self.text()?;
        let body = text.strip_suffix(&field).unwrap_or(&text);
        Ok(sha256(format!("{body}\n}}\n").as_bytes()))
    }
}

/// `None` where no line is a note's.
fn note_figures(contents: &Contents) -> Option<NoteFigures> {
    let mut records = contents.items.records.iter();
    let has_notes = records.any(|record| matches!(record, ItemLine::Note(_)));
    has_notes.then(|| NoteFigures::of(&Outcomes::of(contents), &CorrectionScorer::default()))
}

fn refuse_unfinished(
    contents: &Contents,
    outcomes: &BTreeMap<ItemKey, &ItemLine>,
) -> Result<(), RunError> {
    let plan = &contents.plan;
    let mut runs_of: HashMap<&str, u32> = HashMap::new();
    for key in outcomes.keys() {
        *runs_of.entry(&key.item).or_default() += 1;
    }
    let lacking = |item: &String| {
        let present = runs_of.get(item.as_str()).copied().unwrap_or(0);
        plan.runs.saturating_sub(present) as usize
    };
    let items = &plan.dataset.items;
    match items.iter().find(|item| lacking(item) > 0) {
        None => Ok(()),
        Some(first) => Err(RunError::Unfinished {
            path: contents.path.clone(),
            missing: items.iter().map(lacking).sum(),
            first: first.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{
        ITEMS, call, failed_item, item, log_everything, plan, start, write_finished,
    };

    #[test]
    fn the_figures_of_a_run() {
        let out = tempfile::tempdir().unwrap();
        let results = write_finished(out.path());
        assert_eq!(
            (results.n_items, results.n_runs, results.n_errors),
            (3, 2, 0)
        );
        assert_eq!(results.n_without_gold, 1);
        let accuracy = results.accuracy.clone().unwrap();
        assert_eq!(accuracy.per_run, [0.5, 0.5]);
        assert_eq!((accuracy.mean, accuracy.std), (0.5, Some(0.0)));
        assert_eq!(results.calls, 12);
        let tokens = Tokens {
            prompt: 1200,
            cached: 384,
            completion: 240,
            forced: 72,
        };
        assert_eq!(results.tokens, tokens);
        assert_eq!(results.parse.ok, 12);
        assert_eq!(results.ties, 2);
        assert_eq!(results.mean_rounds_run, Some(1.0));
        assert_eq!(results.elapsed_ms, 1234);
        assert_eq!(
            (results.heads.call_lines, results.heads.item_lines),
            (12, 6)
        );

        let text = fs_err::read_to_string(out.path().join(FILE)).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
        let without_head = text.replace(&format!(",\n  \"head\": \"{}\"", results.head), "");
        assert_ne!(without_head, text);
        assert_eq!(sha256(without_head.as_bytes()), results.head);
    }

    #[test]
    fn errors_count_as_wrong_and_a_retried_item_once() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path(), &plan());
        let mut repaired = call("q1", 0, "sym");
        repaired.parse = Parse::Repaired;
        log.call(repaired).unwrap();
        let mut fallback = call("q1", 0, "ddx");
        fallback.parse = Parse::Fallback;
        log.call(fallback).unwrap();
        log.item(failed_item("q1", 0)).unwrap();
        log.item(failed_item("q2", 0)).unwrap();
        log.item(item("q2", 0)).unwrap();
        log.item(item("q3", 0)).unwrap();
        for name in ITEMS {
            log.item(item(name, 1)).unwrap();
        }
        log.finish().unwrap();
        let results = Results::write(out.path(), 1).unwrap();
        assert_eq!(results.n_errors, 1);
        assert_eq!(results.accuracy.unwrap().per_run, [0.0, 0.5]);
        assert_eq!((results.parse.repaired, results.parse.fallback), (1, 1));
        assert_eq!(results.mean_rounds_run, Some(1.0));
        assert_eq!(results.heads.item_lines, 7);
    }

    #[test]
    fn figures_of_notes_are_of_notes_alone() {
        let out = tempfile::tempdir().unwrap();
        let results = write_finished(out.path());
        assert_eq!(results.notes, None);
        assert!(!results.text().unwrap().contains("notes"));
    }

    #[test]
    fn without_gold_there_is_no_accuracy() {
        let out = tempfile::tempdir().unwrap();
        let mut plan = plan();
        plan.dataset.items = vec!["q3".to_owned()];
        plan.runs = 1;
        let log = start(out.path(), &plan);
        log.item(failed_item("q3", 0)).unwrap();
        log.finish().unwrap();
        let results = Results::write(out.path(), 1).unwrap();
        assert_eq!(results.accuracy, None);
        assert_eq!(results.mean_rounds_run, None);
        assert_eq!((results.n_without_gold, results.n_errors), (1, 1));
    }

    #[test]
    fn an_unfinished_run_has_no_results() {
        let out = tempfile::tempdir().unwrap();
        let mut plan = plan();
        plan.dataset.items.push("q4".to_owned());
        let log = start(out.path(), &plan);
        log_everything(&log);
        log.finish().unwrap();
        let error = Results::write(out.path(), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}: 2 of the planned items have no line, the first of them q4",
                out.path().display()
            )
        );
        assert!(!fs_err::exists(out.path().join(FILE)).unwrap());
    }
}
