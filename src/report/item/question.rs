//! A question's own part of its case: letters against gold, round by round.

use super::step::before;
use super::{Correctness, Leg, Mark, Own, Turn};
use crate::record::{AnswerLine, RoundLine};
use crate::report::escape::plural;

pub fn found(item: &AnswerLine) -> Mark {
    mark(&item.letter(), item)
}

fn mark(letter: &str, item: &AnswerLine) -> Mark {
    Mark { said: letter.to_owned(), verdict: Correctness::of(letter, item.gold.as_deref()) }
}

pub fn own(item: &AnswerLine) -> Own<'_> {
    // An answer that could not be read has none, nor has a system that asks for none.
    let confidence = item.stated_confidence().map(|stated| format!("{stated:.2}"));
    let sure = confidence.as_ref().map(|stated| format!("Team confidence {stated}, "));
    Own {
        first: item.rounds.first().map(|round| mark(&round.aggregate, item)),
        trail: trail(item),
        outcome: outcome(item),
        counts: format!(
            "{}{} after the first, {}.",
            sure.unwrap_or_default(),
            plural(item.rounds_run, "round"),
            plural(item.calls, "call")
        ),
        confidence: confidence.unwrap_or("–".to_owned()),
        tie: item.tie,
        rationale: &item.rationale,
        ..Own::default()
    }
}

/// How the answer stands to gold; and where nobody could be read in the last round, that earlier votes do not count.
fn outcome(item: &AnswerLine) -> Vec<String> {
    let stands = match (&item.gold, found(item).verdict) {
        (None, _) => "The question has no gold answer.".to_owned(),
        (Some(gold), Correctness::Right) => format!("Right: the gold answer is {gold}."),
        (Some(gold), _) => format!("Wrong: the gold answer is {gold}."),
    };
    let is_silent = |round: &RoundLine| round.answers.iter().all(String::is_empty);
    let is_last = item.answer.is_empty() && item.rounds.last().is_some_and(is_silent);
    let is_lost = is_last && !item.rounds.iter().all(is_silent);
    let lost = "Nobody could be read in the last round. Its answers alone are voted on, as in the papers: those of earlier rounds are not used.";
    [stands].into_iter().chain(is_lost.then(|| lost.to_owned())).collect()
}

fn trail(item: &AnswerLine) -> Vec<Leg<'_>> {
    let leg = |number: usize| -> Leg<'_> {
        let round = &item.rounds[number];
        let last = number.checked_sub(1).map(|last| &item.rounds[last]);
        let turn = |(place, said): (usize, &'_ String)| Turn {
            agent: round.agents.get(place).map_or("?", String::as_str),
            said: said.clone(),
            verdict: Correctness::of(said, item.gold.as_deref()),
            changed: before(last, round, place).is_some_and(|before| before != said),
        };
        (format!("round {number}"), round.answers.iter().enumerate().map(turn).collect())
    };
    (0..item.rounds.len()).map(leg).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stage;
    use crate::systems::vote::round_line;

    fn round(number: u32, answers: &[&str]) -> RoundLine {
        let agents = answers.iter().map(|_| "a".to_owned()).collect();
        let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
        round_line(number, Stage::Round, agents, answers, String::new())
    }

    #[test]
    fn a_last_round_in_which_nobody_could_be_read_says_that_earlier_votes_do_not_count() {
        let told = |rounds: Vec<RoundLine>, answer: &str| {
            let item = AnswerLine { rounds, answer: answer.to_owned(), ..AnswerLine::default() };
            own(&item).outcome.len() > 1
        };
        assert!(told(vec![round(0, &["D", "D", "E"]), round(1, &["", "", ""])], ""));
        assert!(!told(vec![round(0, &["D", "D", "E"]), round(1, &["", "D", ""])], "D"));
        assert!(!told(vec![round(0, &["D", "D", "E"]), round(1, &["", "", ""])], "D"));
        assert!(!told(vec![round(0, &["", "", ""]), round(1, &["", "", ""])], ""));
        assert!(!told(vec![round(0, &["", "", ""])], "") && !told(vec![], ""));
    }
}
