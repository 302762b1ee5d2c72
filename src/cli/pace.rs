//! How long one item takes here at most, from the machine's measured limits and the models' configs: nothing is loaded.

use std::iter::once;

use crate::bench::environment::BUFFER_BYTES;
use crate::cli::exit::Failure;
use crate::experiment::models::Models;
use crate::experiment::run::Run;
use crate::model::{CostModel, available_memory};
use crate::ops::Limits;
use crate::panel::backbone::Description;

/// Tokens that a call is taken to write, and to read beside what its prompt shares with the one before.
const CALL_TOKENS: usize = 200;

/// Says how many minutes an item takes, alone and with every call that its system can make; `None` where no model runs here.
///
/// # Errors
/// A GPU that refuses to be measured; a prompt that cannot be made.
pub fn of_item(run: &Run, models: &Models, first_prompt: usize) -> Result<Option<String>, Failure> {
    let (Some(device), false) = (models.devices.first(), models.descriptions.is_empty()) else {
        return Ok(None);
    };
    let limits = device.measure_limits(BUFFER_BYTES.min(available_memory() / 4))?;
    let prompt =
        run.longest_prompt()?.map_or(first_prompt, |longest| longest.tokens.max(first_prompt));
    let calls = run.protocol.max_calls();
    let seconds = |description: &Description| {
        let costs = CostModel::new(&description.config, description.precision, device.machine());
        let pace = Pace { costs: &costs, limits: &limits, description };
        pace.seconds(0, prompt) + f64::from(calls) * pace.call_seconds(prompt)
    };
    let slowest = models.descriptions.iter().map(seconds).fold(0.0, f64::max);
    Ok(Some(format!(
        "{:.1} minutes an item, alone, if all {calls} calls are made: {prompt} tokens read once, {CALL_TOKENS} read and {CALL_TOKENS} written a call, by this machine's measured limits; searches come beside",
        slowest / 60.0
    )))
}

struct Pace<'a> {
    costs: &'a CostModel,
    limits: &'a Limits,
    description: &'a Description,
}

impl Pace<'_> {
    /// Reading positions in one step, or a token: whichever of memory and arithmetic is slower.
    fn seconds(&self, from: usize, to: usize) -> f64 {
        let cost = self.costs.step(once(from..to), 1);
        let read = cost.bytes_read as f64 / self.limits.bytes_per_second;
        let rate = self.limits.matrix_rate(self.description.precision);
        read.max(cost.multiply_adds as f64 / rate)
    }

    fn call_seconds(&self, depth: usize) -> f64 {
        let written = CALL_TOKENS as f64 * self.seconds(depth, depth + 1);
        self.seconds(depth, depth + CALL_TOKENS) + written
    }
}
