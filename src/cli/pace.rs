//! Estimates the most time that one item takes, from the machine's measured limits and the models' configurations; no model is loaded.

use std::iter::once;

use crate::bench::environment::BUFFER_BYTES;
use crate::cli::exit::Failure;
use crate::experiment::forecast::reply_tokens;
use crate::experiment::models::Models;
use crate::experiment::run::Run;
use crate::model::{CostModel, available_memory};
use crate::ops::Limits;
use crate::panel::backbone::Description;

/// The minutes that a single item takes if its system makes all calls that it can; `None` if no model runs on this machine.
pub fn of_item(run: &Run, models: &Models, first_prompt: usize) -> Result<Option<String>, Failure> {
    let (Some(device), false) = (models.devices.first(), models.descriptions.is_empty()) else {
        return Ok(None);
    };
    let limits = device.measure_limits(BUFFER_BYTES.min(available_memory() / 4))?;
    let prompt =
        run.longest_prompt()?.map_or(first_prompt, |longest| longest.tokens.max(first_prompt));
    let calls = run.config.max_calls();
    let reply = reply_tokens(&run.config);
    let seconds = |description: &Description| {
        let costs = CostModel::new(&description.config, description.precision, device.machine());
        let pace = Pace { costs: &costs, limits: &limits, description, reply };
        pace.seconds(0, prompt) + f64::from(calls) * pace.call_seconds(prompt)
    };
    let slowest = models.descriptions.iter().map(seconds).fold(0.0, f64::max);
    Ok(Some(format!(
        "{:.1} minutes an item, alone, if all {calls} calls are made: {prompt} tokens read once, {reply} read and {reply} written a call, by this machine's measured limits, without searches",
        slowest / 60.0
    )))
}

struct Pace<'a> {
    costs: &'a CostModel,
    limits: &'a Limits,
    description: &'a Description,
    /// The tokens that a call is assumed to generate, and to prefill beyond the prefix that it shares with the call before.
    reply: usize,
}

impl Pace<'_> {
    /// The time to prefill these positions in one step, or to decode one: bound by memory or by arithmetic.
    fn seconds(&self, from: usize, to: usize) -> f64 {
        let cost = self.costs.step(once(from..to), 1);
        let read = cost.bytes_read as f64 / self.limits.bytes_per_second;
        let rate = self.limits.matrix_rate(self.description.precision);
        read.max(cost.multiply_adds as f64 / rate)
    }

    fn call_seconds(&self, depth: usize) -> f64 {
        let written = self.reply as f64 * self.seconds(depth, depth + 1);
        self.seconds(depth, depth + self.reply) + written
    }
}
