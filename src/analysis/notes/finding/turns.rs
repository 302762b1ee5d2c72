//! What the agents of a system that searches said, turn by turn.

use super::{Statement, UNREAD};
use crate::record::{CallLine, NoteLine, Trajectory, TurnLine, count, found_in_words};
use crate::systems::medreflex::review::Review;
use crate::systems::medreflex::step::StepRecord;
use crate::systems::reading::is_nothing;

/// Of a system that searches: each turn's answer, what its reviewers decided, and the parser's last word.
pub fn statements(note: &NoteLine, trajectory: &Trajectory, calls: &[CallLine]) -> Vec<Statement> {
    let mut statements = Vec::new();
    for turn in &trajectory.turns {
        let steps = calls_of(turn, "step", calls);
        if let Some(last) = steps.last() {
            let says = match turn.is_final {
                true => format!("{} after {}", answer_in_words(last), count(turn.steps, "step")),
                false => format!("no answer in {}", count(turn.steps, "step")),
            };
            let agrees = turn.accepted || turn.scores.is_empty() && turn.is_final;
            statements.push(Statement { says, agrees, ..Statement::of_call(last) });
        }
        // Of those who decided, the one who thought least of it.
        let reviews = calls_of(turn, "review", calls).into_iter();
        let reviews = reviews.map(|call| (call, call.record.read::<Review>()));
        let least = reviews.min_by_key(|(_, one)| one.final_score().unwrap_or(u32::MAX));
        if let (Some((least, Review { reasons: [.., reasons], .. })), Some((says, mean))) =
            (least, verdict_of(turn))
        {
            statements.push(Statement {
                says,
                agrees: turn.accepted,
                confidence: Some(mean),
                reasons,
                ..Statement::of_call(least)
            });
        }
    }
    let parsed = calls.iter().filter(|call| call.purpose == "parse").max_by_key(|call| call.round);
    if let Some(call) = parsed {
        let said = note.flag.said();
        let says = said.map_or(UNREAD.to_owned(), |flag| found_in_words(flag, note.sentence_id));
        statements.push(Statement { says, agrees: true, ..Statement::of_call(call) });
    }
    statements
}

/// Whether the answer of each turn claims an error; `None` of a turn without one.
pub fn claims(trajectory: &Trajectory, calls: &[CallLine]) -> Vec<Option<bool>> {
    let of_turn = |turn: &TurnLine| {
        let steps = calls_of(turn, "step", calls);
        let answer = steps.last().filter(|_| turn.is_final)?;
        let answer: StepRecord = answer.record.read();
        Some(!is_nothing(answer.sentence().unwrap_or_default()))
    };
    trajectory.turns.iter().map(of_turn).collect()
}

/// A turn's calls of a purpose, in their order.
pub fn calls_of<'a>(
    turn: &TurnLine,
    purpose: &str,
    calls: impl IntoIterator<Item = &'a CallLine>,
) -> Vec<&'a CallLine> {
    let is_own = |call: &&CallLine| call.round == turn.round && call.purpose == purpose;
    let mut own: Vec<&CallLine> = calls.into_iter().filter(is_own).collect();
    own.sort_by_key(|call| call.sample);
    own
}

fn answer_in_words(step: &CallLine) -> &'static str {
    match step.record.read::<StepRecord>().sentence() {
        Some(sentence) if is_nothing(sentence) => "that there is no error",
        Some(_) => "that there is an error",
        None => "an answer",
    }
}

/// A score in hundredths, as in `3.2` and `3.75`.
pub fn score_in_words(hundredths: u64) -> String {
    let (whole, part) = (hundredths / 100, hundredths % 100);
    if part % 10 == 0 { format!("{whole}.{}", part / 10) } else { format!("{whole}.{part:02}") }
}

/// What the reviews of a turn came to, and their mean as a share of five.
fn verdict_of(turn: &TurnLine) -> Option<(String, f64)> {
    let (mean, least) = (turn.mean_hundredths?, turn.min?);
    let verdict = if turn.accepted { "accepted" } else { "rejected" };
    let says = format!(
        "{verdict} by {}, mean {} of 5, least {}",
        count(turn.scores.len(), "review"),
        score_in_words(u64::from(mean)),
        score_in_words(u64::from(least))
    );
    Some((says, f64::from(mean) / 500.0))
}
