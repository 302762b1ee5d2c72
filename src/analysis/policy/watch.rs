//! A policy at work: it escalates everything once cases are no longer such as those of its calibration.

use std::sync::{Mutex, PoisonError};

use super::shift::{BLOCK, LEVEL, p_value};
use super::{Because, Policy};
use crate::record::{CallLine, Decision, ItemLine};

/// The score of a case that has none.
pub const NO_SCORE: f64 = -1.0;

/// A policy, and what the cases that it has judged say of themselves.
pub struct Watch {
    pub policy: Policy,
    alarm: Mutex<Alarm>,
}

/// Compares every [`BLOCK`] cases with those of the calibration.
struct Alarm {
    calibration: Vec<f64>,
    /// Scores since the last comparison.
    recent: Vec<f64>,
    is_raised: bool,
}

impl Watch {
    pub fn new(policy: Policy) -> Watch {
        let alarm = Alarm { calibration: policy.scores(), recent: Vec::new(), is_raised: false };
        Watch { policy, alarm: Mutex::new(alarm) }
    }

    /// What to do with an outcome. Once the alarm is raised everything is escalated, until the program starts again; `on_alarm` is told
    /// when that begins.
    pub fn decide(
        &self,
        line: &ItemLine,
        calls: &[CallLine],
        on_alarm: impl FnOnce(String),
    ) -> Decision {
        let score = self.policy.score.of(line, calls);
        let (was_raised, is_raised) = {
            let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
            (alarm.is_raised, alarm.hears(score.unwrap_or(NO_SCORE)))
        };
        if is_raised && !was_raised {
            let system = &self.policy.subject.system;
            on_alarm(format!(
                "warning: {system}: {}; every case is escalated from here on",
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

    /// Whether the alarm was raised.
    pub fn is_shifted(&self) -> bool {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).is_raised
    }
}

impl Alarm {
    /// Notes a case's score; whether the alarm is raised.
    fn hears(&mut self, score: f64) -> bool {
        self.recent.push(score);
        if self.recent.len() == BLOCK {
            let recent = std::mem::take(&mut self.recent);
            self.is_raised |= p_value(&self.calibration, &recent) <= LEVEL;
        }
        self.is_raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_other_cases_raises_the_alarm_and_it_stays() {
        let calibration = [1.0, 1.0, 2.0 / 3.0].repeat(100);
        let alarm = || Alarm { calibration: calibration.clone(), recent: vec![], is_raised: false };
        let mut like = alarm();
        assert!((0..5 * BLOCK).all(|at| !like.hears(calibration[at % 3])));
        // Cases without a score count too.
        for other in [NO_SCORE, 2.0 / 3.0] {
            let mut alarm = alarm();
            assert!((1..BLOCK).all(|_| !alarm.hears(other)));
            assert!(alarm.hears(other));
            assert!((0..2 * BLOCK).all(|at| alarm.hears(calibration[at % 3])));
        }
    }
}
