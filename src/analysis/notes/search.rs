//! What searching took and gave over a run: steps and turns, seconds and their parts, sources, and what went wrong on the way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::analysis::metrics::over_runs::Spread;
use crate::analysis::metrics::over_runs::mean_and_std;
use crate::analysis::outcomes::Outcomes;
use crate::record::{SearchLine, SourceCounts, Trajectory, TurnLine};

/// Figures of a system that searches, over all notes of all runs that did not error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchFigures {
    /// Steps a note, over all its turns.
    pub steps: Spread,
    /// Outer turns a note.
    pub turns: Spread,
    /// Reflexions a note: one fewer than turns, where the last turn's answer is accepted or the turns run out.
    pub reflexions: Spread,
    /// Of a step: its call and, where it searches, its search.
    pub seconds_a_step: Spread,
    /// Of the steps that search alone: the published release leaves out the last step of every turn.
    pub seconds_a_searching_step: Spread,
    /// The parts of a searching step in milliseconds.
    pub generate_ms: Spread,
    pub embed_ms: Spread,
    pub scan_ms: Spread,
    pub rerank_ms: Spread,
    pub searches: usize,
    /// Searches that an equal one had answered.
    pub cached: usize,
    /// Queries that the encoder's limit cut.
    pub cut_queries: usize,
    /// What the corpus has of each source that was searched.
    pub corpus: Vec<SourceCounts>,
    /// Shown passages by source.
    pub shown: BTreeMap<String, usize>,
    /// Notes of which no answer was accepted.
    pub exhausted: usize,
    /// Of these, the ones that count as notes without an error, by the paper's rule.
    pub exhausted_cleared: usize,
    pub lost_turns: u32,
    pub unread_reviews: u32,
    /// Shown passages that repeat the note.
    pub leaks: u32,
    /// Corrections that bring in a word which no shown passage has.
    pub ungrounded: usize,
    /// Answers that name a source.
    pub cited: usize,
    pub mismatches: usize,
    pub unchanged: usize,
}

/// `None` of no values.
fn spread(values: &[f64]) -> Option<Spread> {
    mean_and_std(values).map(|(mean, std)| Spread { mean, std, n: None })
}

impl SearchFigures {
    /// `None` of a system that searches nothing, and of a run without a note that ended well.
    pub fn of(outcomes: &Outcomes<'_>) -> Option<SearchFigures> {
        let contents = outcomes.contents;
        let corpus = contents.plan.corpus.as_ref()?.contents.clone();
        let notes = contents.notes();
        let all: Vec<&Trajectory> =
            notes.values().filter_map(|note| note.search.as_ref()).collect();
        let of_notes = |count: &dyn Fn(&Trajectory) -> u32| {
            spread(&all.iter().map(|one| f64::from(count(one))).collect::<Vec<f64>>())
        };
        let sum = |count: &dyn Fn(&TurnLine) -> u32| {
            all.iter().flat_map(|one| &one.turns).map(count).sum::<u32>()
        };
        let searches = &contents.searches.records;
        let by_step = searches.iter().map(|one| ((one.run, &*one.item, one.round, one.step), one));
        let by_step: BTreeMap<_, &SearchLine> = by_step.collect();
        let (mut step_seconds, mut searching_seconds) = (Vec::new(), Vec::new());
        let mut generated_ms = Vec::new();
        for call in contents.calls.records.iter().filter(|call| call.purpose == "step") {
            let mut ms = call.elapsed_ms as f64;
            if let Some(search) = by_step.get(&(call.run, &*call.item, call.round, call.sample)) {
                generated_ms.push(ms);
                ms += search.took.embed_ms + search.took.scan_ms + search.took.rerank_ms;
                searching_seconds.push(ms / 1000.0);
            }
            step_seconds.push(ms / 1000.0);
        }
        // Where nothing was done nothing took time.
        let nothing = Spread { mean: 0.0, std: None, n: None };
        let took = |values: &[f64]| spread(values).unwrap_or(nothing);
        let part = |part: &dyn Fn(&SearchLine) -> f64| {
            took(&searches.iter().map(part).collect::<Vec<f64>>())
        };
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        for passage in searches.iter().flat_map(|search| &search.shown) {
            *shown.entry(passage.source.clone()).or_default() += 1;
        }
        let count = |is: &dyn Fn(&Trajectory) -> bool| all.iter().filter(|one| is(one)).count();
        Some(SearchFigures {
            steps: of_notes(&|one| one.turns.iter().map(|turn| turn.steps).sum())?,
            turns: of_notes(&|one| one.turns.len() as u32)?,
            reflexions: of_notes(&|one| one.reflexions)?,
            seconds_a_step: took(&step_seconds),
            seconds_a_searching_step: took(&searching_seconds),
            generate_ms: took(&generated_ms),
            embed_ms: part(&|search| search.took.embed_ms),
            scan_ms: part(&|search| search.took.scan_ms),
            rerank_ms: part(&|search| search.took.rerank_ms),
            searches: searches.len(),
            cached: searches.iter().filter(|search| search.cached).count(),
            cut_queries: searches.iter().filter(|search| search.query_cut).count(),
            corpus,
            shown,
            exhausted: count(&|one| one.exhausted),
            exhausted_cleared: notes
                .values()
                .filter(|note| note.flag.is_clear())
                .filter(|note| note.search.as_ref().is_some_and(|one| one.exhausted))
                .count(),
            lost_turns: sum(&|turn| turn.lost_turns),
            unread_reviews: sum(&|turn| turn.unread_reviews),
            leaks: all.iter().map(|one| one.leaks).sum(),
            ungrounded: count(&|one| one.grounded == Some(false)),
            cited: count(&|one| !one.evidence.is_empty()),
            mismatches: count(&|one| one.mismatch),
            unchanged: count(&|one| one.unchanged),
        })
    }
}

#[cfg(test)]
mod tests;
