//! The figures of a run on questions or on notes: accuracy and its interval, errors, calibration, cost.

use serde::Serialize;

use super::health::ParseHealth;
use super::metrics::bootstrap::{Estimate, run_means, share};
use super::metrics::calibration::{BINS, Calibration, calibration};
use super::metrics::cost::Cost;
use super::metrics::over_runs::OverRuns;
use super::outcomes::Outcomes;

/// An item that errored is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFigures {
    /// `null` where no item has gold.
    pub accuracy: Option<OverRuns>,
    /// 95 % interval of the accuracy, by [`share`] over the items, those that ask nearly the same drawn together.
    pub interval: Option<Estimate>,
    /// How the replies of all calls were read; `null` without calls.
    pub parse_health: Option<ParseHealth>,
    pub n_runs: u32,
    pub n_errors: usize,
    /// Of the team's confidence; `null` where no graded answer has one.
    pub calibration: Option<Calibration>,
    pub cost: Option<Cost>,
}

impl RunFigures {
    pub fn of(outcomes: &Outcomes<'_>) -> RunFigures {
        let verdicts = outcomes.verdicts();
        RunFigures {
            accuracy: OverRuns::of_shares(&verdicts),
            // Of nothing there is none.
            interval: share(&run_means(&verdicts), Some(&outcomes.units())).ok(),
            parse_health: ParseHealth::of(&outcomes.contents.calls.records),
            n_runs: outcomes.contents.plan.runs,
            n_errors: outcomes.n_errors(),
            calibration: calibration(&outcomes.predictions(), BINS),
            cost: outcomes.cost(),
        }
    }
}
