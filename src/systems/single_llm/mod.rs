//! What single-model baselines as in MedAgentBoard make of a model's answers: the letter of each, and a vote over samples.

pub mod parse;
#[cfg(test)]
mod tests;

use self::parse::Reading;
use super::case::Verdict;

/// The most common letter, the first of several; empty answers have no vote. The harness counts answers as written, and takes the letter of
/// the one that won.
pub fn verdict(readings: &[Reading], mab_compat: bool) -> Verdict {
    let (answer, tie) = match mab_compat {
        true => {
            let written: Vec<&str> = readings.iter().map(Reading::written).collect();
            let (winner, tie) = most_common(&written);
            let won = readings.iter().find(|one| one.written() == winner);
            (won.map_or("", |one| &one.answer), tie)
        }
        false => {
            let answers = readings.iter().map(|one| one.answer.as_str());
            most_common(&answers.filter(|answer| !answer.is_empty()).collect::<Vec<_>>())
        }
    };
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

/// The most common text, the first of several, and whether there were several.
fn most_common<'a>(texts: &[&'a str]) -> (&'a str, bool) {
    let count = |text: &str| texts.iter().filter(|other| **other == text).count();
    let most = texts.iter().map(|text| count(text)).max();
    let mut winners = texts.iter().filter(|text| Some(count(text)) == most);
    let winner = winners.next().copied().unwrap_or_default();
    (winner, winners.any(|other| *other != winner))
}
