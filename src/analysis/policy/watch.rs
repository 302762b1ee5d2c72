//! A policy at work: it escalates everything once cases are no longer such as those of its calibration.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::shift::{BLOCK, LEVEL, p_value};
use super::{Because, Policy};
use crate::record::{CallLine, Decision, ItemLine};

/// The score of a case that has none.
pub const NO_SCORE: f64 = -1.0;

/// A policy, and what the cases that it has judged say of themselves.
pub struct Watch {
    pub policy: Policy,
    calibration: Vec<f64>,
    /// By caller: nobody's cases escalate those of others.
    alarms: Mutex<HashMap<String, Alarm>>,
}

/// Compares every [`BLOCK`] cases with those of the calibration.
#[derive(Default)]
struct Alarm {
    /// Scores since the last comparison, by item: one that comes again is no further case.
    recent: HashMap<String, f64>,
    is_raised: bool,
}

impl Watch {
    pub fn new(policy: Policy) -> Watch {
        Watch { calibration: policy.scores(), policy, alarms: Mutex::default() }
    }

    /// What to do with an outcome of a caller's case. Once the alarm is raised everything of this caller is escalated, until the program
    /// starts again; `on_alarm` is told when that begins.
    pub fn decide(
        &self,
        caller: &str,
        line: &ItemLine,
        calls: &[CallLine],
        on_alarm: impl FnOnce(String),
    ) -> Decision {
        let score = self.policy.score.of(line, calls);
        let (was_raised, is_raised) = {
            let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
            let alarm = alarms.entry(caller.to_owned()).or_default();
            let score = score.unwrap_or(NO_SCORE);
            (alarm.is_raised, alarm.hears(&self.calibration, line.item(), score))
        };
        if is_raised && !was_raised {
            let system = &self.policy.subject.system;
            on_alarm(format!(
                "warning: {system}: {}; every case of {caller} is escalated from here on",
                Because::Shifted
            ));
        }
        match score {
            Ok(_) if is_raised => {
                Decision { score: score.ok(), ..self.policy.judge(Err(Because::Shifted)) }
            }
            _ => self.policy.judge(score),
        }
    }

    /// Whether the alarm of any caller was raised.
    pub fn is_shifted(&self) -> bool {
        let alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        alarms.values().any(|alarm| alarm.is_raised)
    }
}

impl Alarm {
    /// Notes a case's score; whether the alarm is raised.
    fn hears(&mut self, calibration: &[f64], item: &str, score: f64) -> bool {
        self.recent.entry(item.to_owned()).or_insert(score);
        if self.recent.len() == BLOCK {
            let recent: Vec<f64> = std::mem::take(&mut self.recent).into_values().collect();
            self.is_raised |= p_value(calibration, &recent) <= LEVEL;
        }
        self.is_raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::policy::tests::policy;
    use crate::record::{AnswerLine, RoundLine, Stage};

    #[test]
    fn a_block_of_other_cases_raises_the_alarm_and_it_stays() {
        let calibration = [1.0, 1.0, 2.0 / 3.0].repeat(100);
        let hears =
            |alarm: &mut Alarm, at: usize, score| alarm.hears(&calibration, &at.to_string(), score);
        let mut like = Alarm::default();
        assert!((0..5 * BLOCK).all(|at| !hears(&mut like, at, calibration[at % 3])));
        // Cases without a score count too.
        for other in [NO_SCORE, 2.0 / 3.0] {
            let mut alarm = Alarm::default();
            assert!((1..BLOCK).all(|at| !hears(&mut alarm, at, other)));
            // What was heard already is no further case.
            assert!((0..BLOCK).all(|_| !hears(&mut alarm, 1, other)));
            assert!(hears(&mut alarm, BLOCK, other));
            assert!((0..2 * BLOCK).all(|at| hears(&mut alarm, at, calibration[at % 3])));
        }
    }

    #[test]
    fn the_cases_of_one_caller_escalate_nobody_elses() {
        let watch = Watch::new(policy());
        let mut told = Vec::new();
        let round = RoundLine {
            round: 0,
            stage: Stage::Aside,
            agents: vec!["solo".to_owned()],
            labels: Vec::new(),
            answers: vec!["A".to_owned()],
            confidences: Vec::new(),
            weights: Vec::new(),
            aggregate: "A".to_owned(),
            brief: String::new(),
        };
        let mut act = |caller: &str, item: usize| {
            let line = AnswerLine {
                item: item.to_string(),
                answer: "A".to_owned(),
                rounds: vec![round.clone()],
                ..AnswerLine::default()
            };
            watch.decide(caller, &line.into(), &[], |words| told.push(words)).because
        };
        // Of the calibration's cases half have another score, and of these none.
        (0..BLOCK).for_each(|item| drop(act("key:1", item)));
        assert_eq!(act("key:1", 0), Some(Because::Shifted.to_string()));
        assert_eq!(act("key:2", 0), None);
        assert!(watch.is_shifted());
        assert!(told.len() == 1 && told[0].contains("case of key:1 is"), "{told:?}");
    }
}
