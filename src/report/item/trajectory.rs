//! How a searching system got to a note's answer, as its case shows it: thoughts, queries, passages, verdicts, reflexions, and the sources of the correction.

use minijinja::context;
use minijinja::value::Value;

use crate::analysis::notes::{calls_of, evidence, facts, may_be_followed, score_in_words};
use crate::record::{CallLine, NoteLine, SearchLine, TurnLine, count};
use crate::systems::medreflex::review::{CRITERIA, Review};
use crate::systems::medreflex::step::{Action, StepRecord};

/// `None` of a system that does not search.
pub fn way(note: &NoteLine, calls: &[&CallLine], searches: &[&SearchLine]) -> Option<Value> {
    let trajectory = note.search.as_ref()?;
    let turns = trajectory.turns.iter().map(|one| turn(one, calls, searches));
    let sources = evidence(note, searches).into_iter().map(|(label, passage)| {
        context! {
            label,
            title => if passage.title.is_empty() { &passage.chunk } else { &passage.title },
            chunk => &passage.chunk,
            // Source, paragraph, date, licence.
            facts => facts(passage).collect::<Vec<_>>().join(" · "),
            url => passage.url.as_deref().unwrap_or_default(),
            text => &passage.text,
            // An address that a browser may follow.
            link => passage.url.as_deref().filter(|url| may_be_followed(url)),
        }
    });
    let [leaks, unknown] =
        [count(trajectory.leaks, "passage"), count(trajectory.unknown_labels, "label")];
    let facts = [
        (trajectory.exhausted, "No answer was accepted: every turn was used up.".to_owned()),
        (
            trajectory.leaks > 0,
            format!("{leaks} repeat words of the note: they may be its source."),
        ),
        (trajectory.unchanged, "The correction is the sentence as it stands.".to_owned()),
        (
            trajectory.mismatch,
            "The parser gave the id of one sentence and the text of another; the id counts."
                .to_owned(),
        ),
        (trajectory.unknown_labels > 0, format!("{unknown} named that no passage has.")),
    ];
    Some(context! {
        turns => turns.collect::<Vec<_>>(),
        sources => sources.collect::<Vec<_>>(),
        // What the correction brings in and no shown passage has.
        missing => trajectory.ungrounded.join(", "),
        grounded => trajectory.grounded,
        facts => facts.into_iter().filter(|one| one.0).map(|one| one.1).collect::<Vec<_>>(),
    })
}

fn turn(turn: &TurnLine, calls: &[&CallLine], searches: &[&SearchLine]) -> Value {
    let of = |purpose: &str| calls_of(turn, purpose, calls.iter().copied());
    let found = |step: u32| {
        let mut all = searches.iter();
        all.find(|search| (search.round, search.step) == (turn.round, step)).copied()
    };
    let reflexion = of("reflexion");
    context! {
        title => title(turn),
        steps => of("step").iter().map(|call| step(call, found(call.sample))).collect::<Vec<_>>(),
        criteria => CRITERIA,
        reviews => of("review").iter().map(|call| review(call)).collect::<Vec<_>>(),
        reflexion => reflexion.first().map_or("", |call| call.record.text()),
    }
}

/// `Turn 1: 3 steps, rejected with a mean of 3.2 and a least of 2`.
fn title(turn: &TurnLine) -> String {
    let lost = match turn.lost_turns {
        0 => String::new(),
        lost => format!(" ({lost} lost)"),
    };
    let verdict = match (turn.is_final, turn.mean_hundredths, turn.min) {
        (false, ..) => "no answer".to_owned(),
        (true, Some(mean), Some(min)) => {
            let verdict = if turn.accepted { "accepted" } else { "rejected" };
            let (mean, min) = (score_in_words(mean.into()), score_in_words(min.into()));
            format!("{verdict} with a mean of {mean} and a least of {min}")
        }
        (true, ..) if turn.unread_reviews > 0 => "rejected: no review could be read".to_owned(),
        (true, ..) => "an answer".to_owned(),
    };
    format!("Turn {}: {}{lost}, {verdict}", turn.round + 1, count(turn.steps, "step"))
}

fn step(call: &CallLine, found: Option<&SearchLine>) -> Value {
    let StepRecord { observation, thought, action } = call.record.read();
    let answer = match action {
        Some(Action::Search { .. }) => None,
        Some(Action::FinalMistake { sentence, correction, .. }) => {
            Some(format!("“{sentence}” → “{correction}”"))
        }
        None => Some("none of the two actions: the step was lost".to_owned()),
    };
    context! {
        number => call.sample + 1,
        observation,
        thought,
        query => found.map(|found| &found.query),
        // A query that the encoder cut.
        query_cut => found.is_some_and(|found| found.query_cut),
        answer,
        passages => found.map(rows).unwrap_or_default(),
        took => found.map_or(String::new(), |found| {
            let took = found.took;
            match found.cached {
                true => "found before".to_owned(),
                false => format!(
                    "{:.0} ms to encode, {:.0} ms to scan, {:.0} ms to rerank",
                    took.embed_ms, took.scan_ms, took.rerank_ms
                ),
            }
        }),
    }
}

/// Each passage, and where it stood before reranking and after.
fn rows(found: &SearchLine) -> Vec<Value> {
    let rows = found.shown.iter().zip(1..).map(|(passage, after): (_, usize)| {
        let before = found.retrieved.iter().position(|one| one.chunk == passage.chunk);
        context! {
            before => 1 + before.unwrap_or(found.retrieved.len()),
            after,
            score => format!("{:.2}", passage.score),
            source => &passage.source,
            title => &passage.title,
            chunk => &passage.chunk,
        }
    });
    rows.collect()
}

fn review(call: &CallLine) -> Value {
    let Review { scores, reasons: [.., reason] } = call.record.read();
    let scores = scores.map(|score| match score {
        Some(score) if score % 100 == 0 => (score / 100).to_string(),
        Some(score) => score_in_words(score.into()),
        None => "–".to_owned(),
    });
    context! {
        number => call.sample + 1,
        scores => scores.to_vec(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_told_in_a_line() {
        let mut turn = TurnLine { steps: 3, is_final: true, ..TurnLine::default() };
        (turn.mean_hundredths, turn.min, turn.lost_turns) = (Some(320), Some(200), 1);
        assert_eq!(
            title(&turn),
            "Turn 1: 3 steps (1 lost), rejected with a mean of 3.2 and a least of 2.0"
        );
        turn.is_final = false;
        assert_eq!(title(&turn), "Turn 1: 3 steps (1 lost), no answer");
    }
}
