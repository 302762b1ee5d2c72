//! What single-model baselines as in MedAgentBoard make of a model's answers: the letter of each, and a vote over samples.

pub mod parse;
#[cfg(test)]
mod tests;

use self::parse::Reading;
use super::case::Verdict;
use super::vote::most;

/// The most common letter, the first of several; empty answers have no vote. The harness counts answers as written, and takes the letter of
/// the one that won.
pub fn verdict(readings: &[Reading]) -> Verdict {
    let counted: Vec<&str> = readings.iter().filter_map(Reading::counted).collect();
    let (winner, tie) = most(&counted).map_or(("", false), |(winner, _, tie)| (winner, tie));
    let won = readings.iter().find(|one| one.counted() == Some(winner));
    let answer = won.map_or("", |one| &one.answer);
    let supporters = || readings.iter().filter(|one| one.answer == answer);
    let thoughts = supporters().filter_map(|one| one.thought.as_deref());
    let rationale: Vec<&str> = thoughts.filter(|thought| !thought.is_empty()).collect();
    Verdict {
        answer: answer.to_owned(),
        team_confidence: supporters().count() as f64 / readings.len() as f64,
        rationale: rationale.join("\n"),
        tie,
    }
}
