//! A question's own part of its case: letters against gold, round by round.

use super::step::before;
use super::{Correctness, Leg, Mark, Own, Turn};
use crate::record::AnswerLine;
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
    let rounds = item.rounds.first();
    Own {
        gold: item.gold.clone().unwrap_or("–".to_owned()),
        first: rounds.map(|round| mark(&round.aggregate, item)),
        found: found(item),
        trail: trail(item),
        outcome: vec![outcome(item)],
        counts: format!(
            "{}{} after the first, {}.",
            confidence
                .as_ref()
                .map_or(String::new(), |stated| format!("Team confidence {stated}, ")),
            plural(item.rounds_run, "round"),
            plural(item.calls, "call")
        ),
        confidence: confidence.unwrap_or("–".to_owned()),
        tie: item.tie,
        rationale: &item.rationale,
        ..Own::default()
    }
}

fn outcome(item: &AnswerLine) -> String {
    match (&item.gold, found(item).verdict) {
        (None, _) => "The question has no gold answer.".to_owned(),
        (Some(gold), Correctness::Right) => format!("Right: the gold answer is {gold}."),
        (Some(gold), _) => format!("Wrong: the gold answer is {gold}."),
    }
}

fn trail(item: &AnswerLine) -> Vec<Leg<'_>> {
    let leg = |number: usize| {
        let round = &item.rounds[number];
        let last = number.checked_sub(1).map(|last| &item.rounds[last]);
        let turn = |(place, said): (usize, &'_ String)| Turn {
            agent: round.agents.get(place).map_or("?", String::as_str),
            said: said.clone(),
            verdict: Correctness::of(said, item.gold.as_deref()),
            changed: before(last, round, place).is_some_and(|before| before != said),
        };
        Leg {
            title: format!("round {number}"),
            turns: round.answers.iter().enumerate().map(turn).collect(),
        }
    };
    (0..item.rounds.len()).map(leg).collect()
}
