//! A policy at work: it escalates everything once cases are no longer such as those of its calibration.

use std::sync::{Mutex, PoisonError};

use super::shift::{BLOCK, LEVEL, p_value};
use super::{Because, Policy};
use crate::console;
use crate::record::{CallLine, Decision, ItemLine};

/// The score of a case that has none.
pub const NO_SCORE: f64 = -1.0;

/// A policy, and the scores of the cases that it has judged since the last test.
pub struct Watch {
    pub policy: Policy,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recent: Vec<f64>,
    is_shifted: bool,
}

impl Watch {
    pub fn new(policy: Policy) -> Watch {
        Watch { policy, state: Mutex::default() }
    }

    /// What to do with an outcome. Every hundred cases are compared with those of the calibration; once they differ, all that follow are
    /// escalated, until the program starts again.
    pub fn decide(&self, line: &ItemLine, calls: &[CallLine]) -> Decision {
        let score = self.policy.score.of(line, calls);
        match score {
            Ok(_) if self.meets(score.unwrap_or(NO_SCORE)) => {
                Decision { score: score.ok(), ..self.policy.judge(Err(Because::Shifted)) }
            }
            _ => self.policy.judge(score),
        }
    }

    /// Notes a score; whether the alarm was raised.
    fn meets(&self, score: f64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.recent.push(score);
        if state.recent.len() == BLOCK {
            let recent = std::mem::take(&mut state.recent);
            if !state.is_shifted && p_value(&self.policy.scores(), &recent) <= LEVEL {
                console::note(format!(
                    "warning: {}: {}; every case is escalated from here on",
                    self.policy.subject.system,
                    Because::Shifted
                ));
                state.is_shifted = true;
            }
        }
        state.is_shifted
    }

    /// Whether the alarm was raised.
    pub fn is_shifted(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_shifted
    }
}
