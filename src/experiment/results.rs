//! `results.json`: what a finished run counts, its figures, and the heads that fix all its bytes.
//!
//! Every count follows from the plan and the logs. Figures are derived by the analysis layer and are opaque here. `head` is the
//! lower-case hex sha256 over the file's bytes with `,\n  "head": "…"` taken out, so that it alone covers plan, logs and figures.

use std::path::Path;

use itertools::Itertools;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::contents::Contents;
use super::error::RunError;
use super::{utc_now, versions, whole_file};
use crate::digest::sha256;
use crate::outside;
use crate::record::{CallLine, Parse, Schema, Usage, is_default};

/// The file's name in the run directory.
pub const FILE: &str = "results.json";

/// The counts of a run and its figures. Where an item has several lines, the last one counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Results {
    #[cfg_attr(test, schemars(with = "u32"))]
    pub schema: Schema,
    /// The version of wardround that computed the figures.
    pub version: String,
    /// The versions that wrote the plan and the logs, in their order.
    pub versions: Vec<String>,
    pub system: String,
    pub dataset: String,
    /// Questions or notes, with and without gold.
    pub n_items: usize,
    /// Those without gold, which no accuracy counts.
    pub n_without_gold: usize,
    pub n_runs: u32,
    /// Items that errored, over all runs; each is wrong in the accuracy.
    pub n_errors: usize,
    pub calls: usize,
    pub tokens: Tokens,
    pub parse: ParseCounts,
    /// As the analysis layer names them.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
    /// Wall time of the command that finished the run; an interrupted one before it is not in it.
    pub elapsed_ms: u64,
    /// UTC, RFC 3339.
    pub finished_at: String,
    pub heads: Heads,
    pub head: String,
}

/// Tokens of all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tokens {
    pub prompt: usize,
    /// Of the prompts, found in the prefix index.
    pub cached: usize,
    pub completion: usize,
    /// Of the completions, dictated by the constraint and never sampled.
    pub forced: usize,
}

impl Tokens {
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> Tokens {
        let sum = calls.into_iter().fold(Usage::default(), |sum, call| sum.and(call.usage));
        Tokens {
            prompt: sum.prompt_tokens,
            cached: sum.cached_tokens,
            completion: sum.completion_tokens,
            forced: sum.forced_tokens,
        }
    }
}

/// How the records were read, over all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParseCounts {
    pub ok: usize,
    pub repaired: usize,
    pub fallback: usize,
    /// Calls that the model declined.
    pub refused: usize,
    /// Calls of which nothing could be read.
    pub unread: usize,
    /// Of the unread, those that answered with a letter that is not an option of the item.
    pub not_an_option: usize,
    /// Of the unread, those that put the letter of one option beside the text of another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub contradictions: usize,
}

impl ParseCounts {
    pub fn of<'a>(calls: impl IntoIterator<Item = &'a CallLine>) -> ParseCounts {
        let mut counts = ParseCounts::default();
        for call in calls {
            match call.parse {
                Parse::Ok => counts.ok += 1,
                Parse::Repaired => counts.repaired += 1,
                Parse::Fallback => counts.fallback += 1,
                Parse::Refused => counts.refused += 1,
                Parse::Unread => counts.unread += 1,
            }
            counts.not_an_option += usize::from(call.record.is_not_an_option());
            counts.contradictions += usize::from(call.record.is_contradiction());
        }
        counts
    }
}

/// The sha256 of plan.toml, and each log's last hash with its count of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Heads {
    pub plan: String,
    pub calls: String,
    pub items: String,
    pub call_lines: u64,
    pub item_lines: u64,
    /// Of a run that searches a corpus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searches: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_lines: Option<u64>,
}

impl Results {
    /// Writes the results.json of a finished run.
    pub fn write(
        contents: &Contents,
        figures: Map<String, Value>,
        elapsed_ms: u64,
    ) -> Result<Results, RunError> {
        refuse_unfinished(contents)?;
        let mut results = Results::of(contents);
        results.figures = figures;
        results.elapsed_ms = elapsed_ms;
        results.finished_at = utc_now();
        results.head = results.computed_head()?;
        whole_file::write_private(&contents.path.join(FILE), results.text()?.as_bytes())?;
        Ok(results)
    }

    /// The counts of a run, without figures and times.
    pub(super) fn of(contents: &Contents) -> Results {
        let plan = &contents.plan;
        let outcomes = contents.outcomes();
        let without_gold = outcomes.iter().filter(|(_, record)| record.correct().is_none());
        Results {
            schema: Schema,
            version: versions::THIS.to_owned(),
            versions: contents.versions.clone(),
            system: plan.system.clone(),
            dataset: plan.dataset.name.clone(),
            n_items: plan.dataset.items.len(),
            n_without_gold: without_gold.map(|(key, _)| &key.item).unique().count(),
            n_runs: plan.runs,
            n_errors: outcomes.values().filter(|r| r.error().is_some()).count(),
            calls: contents.calls.records.len(),
            tokens: Tokens::of(&contents.calls.records),
            parse: ParseCounts::of(&contents.calls.records),
            figures: Map::new(),
            elapsed_ms: 0,
            finished_at: String::new(),
            heads: contents.heads(),
            head: String::new(),
        }
    }

    /// The bytes of results.json.
    pub fn text(&self) -> Result<String, RunError> {
        let json = serde_json::to_string_pretty(self)
            .map_err(|error| RunError::unloggable(FILE, error))?;
        Ok(json + "\n")
    }

    pub(super) fn computed_head(&self) -> Result<String, RunError> {
        let field = format!(",\n  \"head\": \"{}\"\n}}\n", self.head);
        let text = self.text()?;
        let body = text.strip_suffix(&field).unwrap_or(&text);
        Ok(sha256(format!("{body}\n}}\n").as_bytes()))
    }
}

/// Reads the results.json of a directory; `None` for a run that has not finished.
pub fn read_bytes(directory: &Path) -> Result<Option<Vec<u8>>, RunError> {
    Ok(outside::if_there(outside::file(directory.join(FILE)))?)
}

/// # Errors
/// A planned item without a line.
pub(super) fn refuse_unfinished(contents: &Contents) -> Result<(), RunError> {
    let (plan, outcomes) = (&contents.plan, contents.outcomes());
    let runs_of = outcomes.keys().map(|key| key.item.as_str()).counts();
    let runs = |item: &str| runs_of.get(item).copied().unwrap_or(0);
    match plan.dataset.items.iter().find(|item| runs(item) < plan.runs as usize) {
        None => Ok(()),
        Some(item) => {
            let lacks = format!("lacks a line of the planned item {item}");
            Err(RunError::Unfinished { path: contents.path.clone(), lacks })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{
        ITEMS, call, failed_item, item, log_everything, plan, start, write_finished, write_results,
    };

    #[test]
    fn the_counts_of_a_run() {
        let out = tempfile::tempdir().unwrap();
        let results = write_finished(out.path());
        let counted = (results.n_items, results.n_runs, results.n_errors);
        assert_eq!(counted, (3, 2, 0));
        assert_eq!((results.n_without_gold, results.calls), (1, 12));
        let tokens = Tokens { prompt: 1200, cached: 384, completion: 240, forced: 72 };
        assert_eq!(results.tokens, tokens);
        assert_eq!((results.parse.ok, results.elapsed_ms), (12, 1234));
        let lines = (results.heads.call_lines, results.heads.item_lines);
        assert_eq!(lines, (12, 6));

        let text = fs_err::read_to_string(out.path().join(FILE)).unwrap();
        assert!(text.starts_with("{\n  \"schema\": 1,\n"), "{text}");
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
        let without_head = text.replace(&format!(",\n  \"head\": \"{}\"", results.head), "");
        assert_ne!(without_head, text);
        assert_eq!(sha256(without_head.as_bytes()), results.head);
    }

    #[test]
    fn counts_that_no_model_has_sum_to_the_largest_number() {
        let mut call = call("q1", 0, "sym");
        call.usage.prompt_tokens = usize::MAX;
        let tokens = Tokens::of([&call, &call]);
        assert_eq!((tokens.prompt, tokens.completion), (usize::MAX, 40));
        assert_eq!(call.usage.total(), usize::MAX);
    }

    #[test]
    fn a_retried_item_counts_once() {
        let out = tempfile::tempdir().unwrap();
        let log = start(out.path(), &plan());
        let mut repaired = call("q1", 0, "sym");
        repaired.parse = Parse::Repaired;
        log.call(repaired).unwrap();
        let mut unread = call("q1", 0, "ddx");
        unread.parse = Parse::Unread;
        unread.record.mark_not_an_option("J".to_owned());
        log.call(unread).unwrap();
        log.item(failed_item("q1", 0)).unwrap();
        log.item(failed_item("q2", 0)).unwrap();
        log.item(item("q2", 0)).unwrap();
        log.item(item("q3", 0)).unwrap();
        for name in ITEMS {
            log.item(item(name, 1)).unwrap();
        }
        log.finish().unwrap();
        let results = write_results(out.path(), 1).unwrap();
        assert_eq!(results.n_errors, 1);
        let parse = ParseCounts { repaired: 1, unread: 1, not_an_option: 1, ..Default::default() };
        assert_eq!(results.parse, parse);
        assert_eq!(results.heads.item_lines, 7);
    }

    #[test]
    fn an_unfinished_run_has_no_results() {
        let out = tempfile::tempdir().unwrap();
        let mut plan = plan();
        plan.dataset.items.push("q4".to_owned());
        let log = start(out.path(), &plan);
        log_everything(&log);
        log.finish().unwrap();
        let error = write_results(out.path(), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} lacks a line of the planned item q4", out.path().display())
        );
        assert!(!fs_err::exists(out.path().join(FILE)).unwrap());
    }
}
