//! The figures of a finished run in its results.json: written, and computed again to see whether they still hold.

use std::path::Path;

use itertools::Itertools;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::health::ParseHealth;
use super::metrics::bootstrap::{Estimate, run_means, share};
use super::metrics::cost::Cost;
use super::metrics::over_runs::{OverRuns, mean};
use super::notes::{CorrectionScorer, NoteFigures};
use super::outcomes::Outcomes;
use crate::experiment::compare;
use crate::experiment::contents::Contents;
use crate::experiment::error::{Defect, RunError};
use crate::experiment::results::{self, Results};
use crate::experiment::verify::{self, Verified, first_difference};
use crate::experiment::versions;

/// What stands as it was written, and `head` covers it, as it covers all: figures of earlier versions that nobody reads now, and sentences,
/// which a version words its own way.
const AS_WRITTEN: [&[&str]; 6] = [
    &["items_root"],
    &["notes", "search", "reviews"],
    &["warnings"],
    &["parse_health", "looping"],
    &["parse_health", "cut"],
    &["parse_health", "contradictory"],
];
/// The figure that is equal in equal runs ([`compare::digest`]). Earlier versions wrote none.
pub const DIGEST: &str = "digest";
/// Formats that versions before had and this one has not; what it does not compute of their runs stands as it was written.
const GONE_FORMATS: [&str; 3] = ["open", "pubmedqa-open", "scale"];

/// What follows from the plan and the logs by the rules of this version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Of answers, or of flags on notes; `null` where nothing has gold.
    pub accuracy: Option<OverRuns>,
    /// How the replies of all calls were read; `null` without calls.
    pub parse_health: Option<ParseHealth>,
    /// Warnings to be shown with the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Items that are drawn together in a bootstrap, for they ask nearly the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near_duplicates: Vec<Vec<String>>,
    /// What is drawn, where that is fewer than the graded items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_units: Option<usize>,
    /// Votes that were tied, over all runs.
    pub ties: usize,
    /// Over the questions of all runs that did not error; `null` where there is none.
    pub mean_rounds_run: Option<f64>,
    /// Of a run on notes, without what neural measures say; absent of one on questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<NoteFigures>,
}

impl Figures {
    pub fn of(contents: &Contents) -> Figures {
        let outcomes = Outcomes::of(contents);
        let answers = contents.answers();
        let answered = answers.values().filter(|record| record.error.is_none());
        let rounds: Vec<f64> = answered.map(|record| f64::from(record.rounds_run)).collect();
        let mut records = contents.items.records.iter();
        let has_notes = records.any(|record| record.note().is_some());
        let parse_health = ParseHealth::of(&contents.calls.records);
        let near_duplicates = outcomes.near_duplicates();
        let surplus: usize = near_duplicates.iter().map(|group| group.len() - 1).sum();
        Figures {
            parse_health,
            near_duplicates,
            n_units: (surplus > 0).then(|| outcomes.items.len() - surplus),
            warnings: warnings(contents),
            accuracy: outcomes.accuracy(),
            ties: answers.values().filter(|record| record.tie).count(),
            mean_rounds_run: mean(&rounds),
            notes: has_notes.then(|| NoteFigures::of(&outcomes, &CorrectionScorer::default())),
        }
    }

    /// As results.json has them, the run's digest behind them.
    fn to_map(&self, contents: &Contents) -> Result<Map<String, Value>, RunError> {
        let json = serde_json::to_string(self).and_then(|text| serde_json::from_str(&text));
        let mut map: Map<String, Value> =
            json.map_err(|error| RunError::unloggable(results::FILE, error))?;
        map.insert(DIGEST.to_owned(), compare::digest(contents)?.into());
        Ok(map)
    }
}

/// What is compared of a run with others. An item that errored is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFigures {
    /// `null` where no item has gold.
    pub accuracy: Option<OverRuns>,
    /// 95 % interval of the accuracy, by [`share`] over the items, those that ask nearly the same drawn together.
    pub interval: Option<Estimate>,
    /// How the replies of all calls were read; `null` without calls.
    pub parse_health: Option<ParseHealth>,
    pub n_runs: u32,
    pub n_errors: usize,
    pub cost: Option<Cost>,
}

impl RunFigures {
    pub fn of(outcomes: &Outcomes<'_>) -> RunFigures {
        RunFigures {
            accuracy: outcomes.accuracy(),
            interval: share(&run_means(&outcomes.right()), &outcomes.units()),
            parse_health: ParseHealth::of(&outcomes.contents.calls.records),
            n_runs: outcomes.contents.plan.runs,
            n_errors: outcomes.n_errors(),
            cost: outcomes.cost(),
        }
    }
}

/// What is said beside the figures: how replies were read, and whether several are one.
pub fn warnings(contents: &Contents) -> Vec<String> {
    let of_health = ParseHealth::of(&contents.calls.records).map(|health| health.warnings());
    of_health.into_iter().flatten().chain(copies(contents)).collect()
}

/// The warning of samples that are all copies of the first, as of a greedy model: a vote over them is one opinion, and a standard deviation
/// over such runs is 0 by itself.
fn copies(contents: &Contents) -> Option<String> {
    let texts = contents
        .calls
        .records
        .iter()
        .map(|call| ((&call.item, &call.agent, &call.purpose, call.round), &call.text));
    let texts = texts.into_group_map();
    let mut several = texts.values().filter(|said| said.len() > 1).peekable();
    several.peek()?;
    let of_samples = contents.calls.records.iter().any(|call| call.sample > 0);
    several.all(|said| said.iter().all_equal()).then(|| {
        let what = if of_samples { "samples of a question" } else { "runs" };
        format!(
            "Warning: all {what} gave the same replies, word for word, as a greedy model's do (temperature 0). They are one opinion: neither a vote nor a standard deviation over them says anything."
        )
    })
}

/// Computes the figures of a finished run, and writes its results.json.
///
/// # Errors
/// A planned item without a line; a file that cannot be written.
pub fn write(contents: &Contents, elapsed_ms: u64) -> Result<(Results, Figures), RunError> {
    let figures = Figures::of(contents);
    let results = Results::write(contents, figures.to_map(contents)?, elapsed_ms)?;
    Ok((results, figures))
}

/// Computes the figures again. Where they differ from those in `stored` and another version wrote those, says so.
///
/// # Errors
/// Figures that this version would have written otherwise, though it wrote them; those of a version that it cannot know of, which nobody could
/// compare.
pub fn check(contents: &Contents, stored: &Results) -> Result<Option<String>, RunError> {
    let path = contents.path.join(results::FILE);
    if versions::is_unknown(&stored.version) {
        let text = stored.text()?;
        let before = text.lines().take_while(|line| !line.starts_with("  \"version\": "));
        let (line, found) = (1 + before.count(), stored.version.clone());
        return Err(RunError::BadLine { path, line, defect: Defect::Version { found } });
    }
    let format = contents.plan.dataset.format.as_str();
    if GONE_FORMATS.contains(&format) {
        return Ok(Some(format!(
            "{}: figures of the format `{format}`, which this version has not, are not computed again",
            path.display()
        )));
    }
    let mut figures = Figures::of(contents).to_map(contents)?;
    figures.retain(|name, _| name != DIGEST || stored.figures.contains_key(DIGEST));
    AS_WRITTEN.iter().for_each(|path| take_over(&mut figures, &stored.figures, path));
    let expected = Results { figures, ..stored.clone() };
    let Some((line, defect)) = first_difference(&stored.text()?, &expected.text()?) else {
        return Ok(None);
    };
    let this = versions::THIS;
    match &defect {
        Defect::Figure { found, expected } if stored.version != this => Ok(Some(format!(
            "{}, line {line}: version {} wrote `{found}`, version {this} computes `{expected}`",
            path.display(),
            stored.version
        ))),
        _ => Err(RunError::BadLine { path, line, defect }),
    }
}

/// Puts the value at a path where `found` has it.
fn take_over(own: &mut Map<String, Value>, found: &Map<String, Value>, path: &[&str]) {
    let [name, rest @ ..] = path else { return };
    match (own.get_mut(*name), found.get(*name)) {
        (Some(Value::Object(own)), Some(Value::Object(found))) => take_over(own, found, rest),
        (Some(own), Some(value)) if rest.is_empty() => *own = value.clone(),
        (Some(_), None) if rest.is_empty() => {
            own.shift_remove(*name);
        }
        (None, Some(value)) if rest.is_empty() => {
            let place = found.keys().take_while(|known| known.as_str() != *name).count();
            own.shift_insert(place.min(own.len()), (*name).to_owned(), value.clone());
        }
        _ => {}
    }
}

/// Verifies a run directory, its figures too. With it comes what another version computed otherwise.
///
/// # Errors
/// See [`verify::verify`]; of a results.json whose figures were changed the error names their line.
pub fn verify(
    path: &Path,
    expected_head: Option<&str>,
) -> Result<(Verified, Option<String>), RunError> {
    match verify::verify(path, expected_head) {
        Ok(verified) => {
            let results = verified.results.as_ref();
            let note = results.map(|results| check(&verified.contents, results)).transpose()?;
            Ok((verified, note.flatten()))
        }
        Err(error) => match &error {
            RunError::BadLine { path: file, .. } if file.ends_with(results::FILE) => {
                Err(changed_figure(path).unwrap_or(error))
            }
            _ => Err(error),
        },
    }
}

/// The figure that is not what the logs give, of a results.json that does not verify.
fn changed_figure(path: &Path) -> Option<RunError> {
    let contents = Contents::read(path).ok()?;
    let stored = serde_json::from_slice(&results::read_bytes(path).ok()??).ok()?;
    check(&contents, &stored).err()
}

#[cfg(test)]
mod tests;
