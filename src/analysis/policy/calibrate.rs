//! From finished runs whose right outcomes are known to a policy.

use std::collections::{BTreeMap, HashSet};

use clap::ValueEnum;
use serde::Serialize;

use super::watch::NO_SCORE;
use super::{Calibration, Case, FORM, Guarantee, Point, Policy, Score, Subject, curve};
use crate::analysis::metrics::near_duplicates::units;
use crate::analysis::outcomes::Outcomes;
use crate::analysis::rating::joined::RunRatings;
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::experiment::clock;
use crate::experiment::contents::Contents;
use crate::record::{CallLine, Decision, ItemKey, ItemLine, ItemText};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub guarantee: Guarantee,
    pub score: Score,
    /// Whether raters say what is wrong (`ratings.json`), not the file's gold: an outcome that any of them scores below 2 of 3.
    pub by_raters: bool,
}

/// Of 0 to 3: «good, with small faults».
const GOOD: u8 = 2;

/// A policy, and what it does on the cases that it comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Calibrated {
    pub policy: Policy,
    pub curve: Vec<Point>,
    /// By kind of case, where the files say it: how many there are, how many of them are acted upon, and how many of these are wrong.
    pub groups: BTreeMap<String, [usize; 3]>,
    /// The items that are acted upon and wrong.
    pub missed: Vec<String>,
    /// Cases that ask nearly the same as another, of any of the runs: one of them counts.
    pub left_out: usize,
}

/// Of each run its first repetition counts, since repetitions of an item are no further cases.
///
/// # Errors
/// Runs of different systems, models or prompts; items without gold, unfinished runs, an item twice; too few cases, or none that proves
/// enough.
pub fn calibrate(runs: &[Contents], choice: &Choice) -> Result<Calibrated, Failure> {
    let Some(first) = runs.first() else {
        return Err(Failure::usage("there is no run", "name finished run directories"));
    };
    let subject = Subject::of(&first.plan)?;
    let (mut cases, mut texts, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    for run in runs {
        let differences = subject.differences(&Subject::of(&run.plan)?)?;
        if let Some(difference) = differences.first() {
            let (one, other) = (first.path.display(), run.path.display());
            let message = format!("{one} and {other} are not of the same system: {difference}");
            return Err(Failure::usage(message, "calibrate them one by one"));
        }
        for case in cases_of(run, choice)? {
            let place = (run.plan.dataset.sha256.clone(), case.item.clone());
            // Of a unit the one with the lowest sum counts, so that neither its outcome nor the order of a file chooses it.
            let lot = sha256(format!("{} {}", place.0, place.1));
            if !known.insert(place) {
                let message = format!("{} is in the runs twice", case.item);
                return Err(Failure::usage(message, "give each case once"));
            }
            texts.push(run.texts.get(&case.item));
            cases.push((lot, case));
        }
    }
    let all = cases.len();
    let cases = independent(cases, &texts);
    let left_out = all - cases.len();
    let Choice { guarantee, score, .. } = *choice;
    let points = curve(&cases);
    let Some(point) = guarantee.threshold(&cases) else {
        return Err(too_little(&cases, &guarantee));
    };
    let acted = |case: &&Case| case.score.is_ok_and(|score| score >= point.threshold);
    let mut groups: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for case in &cases {
        for group in &case.groups {
            let counts = groups.entry(group.clone()).or_default();
            counts[0] += 1;
            counts[1] += usize::from(acted(&case));
            counts[2] += usize::from(acted(&case) && case.is_wrong);
        }
    }
    let wrong = cases.iter().filter(acted).filter(|case| case.is_wrong);
    let missed = wrong.map(|case| case.item.clone()).collect();
    Ok(Calibrated {
        policy: Policy {
            wardround_policy: FORM,
            created_at: clock::utc_now(),
            synthetic: runs.iter().any(|run| run.plan.synthetic),
            score,
            threshold: point.threshold,
            guarantee,
            calibration: Calibration {
                cases: cases.len(),
                acted: point.acted,
                wrong: point.wrong,
                bound: guarantee.bound(&point, cases.len()),
                runs: runs.iter().map(|run| run.plan_sha256.clone()).collect(),
                scores: counted(&cases),
            },
            subject,
        },
        curve: points,
        groups,
        missed,
        left_out,
    })
}

/// One case of each unit of those that ask nearly the same, in their order: together they would count as more than they prove.
fn independent(cases: Vec<(String, Case)>, texts: &[Option<&ItemText>]) -> Vec<Case> {
    let units = units(texts);
    let mut lowest: BTreeMap<usize, &str> = BTreeMap::new();
    for (unit, (lot, _)) in units.iter().zip(&cases) {
        let own = lowest.entry(*unit).or_insert(lot);
        *own = (*own).min(lot);
    }
    let kept: Vec<bool> = units
        .iter()
        .zip(&cases)
        .map(|(unit, (lot, _))| lowest.get(unit) == Some(&&**lot))
        .collect();
    let cases = cases.into_iter().zip(kept).filter(|(_, is_kept)| *is_kept);
    cases.map(|((_, case), _)| case).collect()
}

/// What a policy says of an outcome, and whether acting upon it was wrong, where that is known.
pub struct Decided {
    pub key: ItemKey,
    pub decision: Decision,
    pub is_wrong: Option<bool>,
}

/// Of every outcome of a run.
pub fn decisions(run: &Contents, policy: &Policy) -> Vec<Decided> {
    let decided = |(key, line): (ItemKey, &ItemLine)| Decided {
        key,
        decision: policy.decide(line, &calls_of(run, line)),
        is_wrong: is_wrong(line),
    };
    run.outcomes().into_iter().map(decided).collect()
}

/// The graded cases of a run's first repetition, and the risk–coverage curve of each score that any of them has.
pub fn curves(run: &Contents) -> (usize, Vec<(Score, Vec<Point>)>) {
    let outcomes = Outcomes::of(run);
    let lines: Vec<&ItemLine> =
        outcomes.lines.first().into_iter().flatten().copied().flatten().collect();
    let graded: Vec<(&ItemLine, bool)> =
        lines.into_iter().filter_map(|line| Some((line, is_wrong(line)?))).collect();
    let curve_of = |score: &Score| {
        let case = |(line, is_wrong): &(&ItemLine, bool)| Case {
            item: String::new(),
            score: score.of(line, &calls_of(run, line)),
            is_wrong: *is_wrong,
            groups: Vec::new(),
        };
        let points = curve(&graded.iter().map(case).collect::<Vec<_>>());
        (!points.is_empty()).then_some((*score, points))
    };
    (graded.len(), Score::value_variants().iter().filter_map(curve_of).collect())
}

fn cases_of(run: &Contents, choice: &Choice) -> Result<Vec<Case>, Failure> {
    let directory = run.path.display();
    let ratings = match choice.by_raters {
        false => None,
        true => Some(RunRatings::read(run)?.ok_or_else(|| {
            let hint = "`wardround rate score … --join` puts them there";
            Failure::usage(format!("{directory} has no ratings"), hint)
        })?),
    };
    let mut cases = Vec::new();
    let outcomes = Outcomes::of(run);
    let lines = outcomes.lines.first().into_iter().flatten();
    for (item, line) in run.plan.dataset.items.iter().zip(lines) {
        let line = line.ok_or_else(|| {
            let hint =
                "`wardround resume` ends it: a policy from a part of the cases has no guarantee";
            Failure::usage(format!("{directory} is not finished: {item} is missing"), hint)
        })?;
        let known = match &ratings {
            None => is_wrong(line),
            Some(ratings) => is_rated_wrong(ratings, item),
        };
        let is_wrong = known.ok_or_else(|| {
            let (lacks, hint) = match choice.by_raters {
                false => {
                    ("gold", "calibrate on cases whose right outcome is known, or --by-raters")
                }
                true => {
                    ("rating of every rater", "have all of them rated: `rate export --notes N`")
                }
            };
            Failure::usage(format!("{item} of {directory} has no {lacks}"), hint)
        })?;
        cases.push(Case {
            item: item.clone(),
            score: choice.score.of(line, &calls_of(run, line)),
            is_wrong,
            groups: groups(line),
        });
    }
    Ok(cases)
}

/// Whether acting upon the outcome is wrong: an answer that is not the gold one, a note cleared that has an error.
fn is_wrong(line: &ItemLine) -> Option<bool> {
    match line {
        ItemLine::Answer(_) => line.correct().map(|is_right| !is_right),
        ItemLine::Note(line) => line.gold.as_ref().map(|gold| gold.flag),
    }
}

/// `None` unless every rater has scored it.
fn is_rated_wrong(ratings: &RunRatings, item: &str) -> Option<bool> {
    let entry = ratings.entries.iter().find(|entry| entry.item == item)?;
    let scores: Vec<u8> = entry.scores.iter().copied().collect::<Option<_>>()?;
    Some(scores.iter().any(|score| *score < GOOD))
}

fn groups(line: &ItemLine) -> Vec<String> {
    let Some(note) = line.note() else { return Vec::new() };
    let kind = note.gold.as_ref().and_then(|gold| gold.kind.as_ref());
    let language = format!("notes in {}", note.language);
    std::iter::once(language).chain(kind.map(|kind| format!("errors of {kind}"))).collect()
}

/// Those of a note of a system that searches: whether it is cleared depends on what its turns said.
fn calls_of(run: &Contents, line: &ItemLine) -> Vec<CallLine> {
    if line.note().is_none_or(|note| note.search.is_none()) {
        return Vec::new();
    }
    let own = |call: &&CallLine| call.run == line.run() && call.item == line.item();
    run.calls.records.iter().filter(own).cloned().collect()
}

fn counted(cases: &[Case]) -> Vec<(f64, usize)> {
    let mut scores: Vec<f64> = cases.iter().map(|case| case.score.unwrap_or(NO_SCORE)).collect();
    scores.sort_by(f64::total_cmp);
    let equal = scores.chunk_by(|a, b| a == b);
    equal.map(|equal| (equal[0], equal.len())).collect()
}

fn too_little(cases: &[Case], guarantee: &Guarantee) -> Failure {
    let needed = guarantee.needed();
    let scored = cases.iter().filter(|case| case.score.is_ok()).count();
    let message = match cases.len() < needed {
        true => format!(
            "{} cases are too few: even without a wrong one {needed} are needed",
            cases.len()
        ),
        false => format!(
            "no threshold keeps {guarantee}: of {} cases {scored} could be acted upon, and too many of them are wrong or too few are there",
            cases.len()
        ),
    };
    Failure::outcome(message, Some("calibrate on more cases, or allow a larger --risk".to_owned()))
}
