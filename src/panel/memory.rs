//! Memory planning: how many KV-cache pages each engine gets, and whether everything fits, before anything is loaded.

use super::PanelError;
use super::backbone::Description;
use crate::engine::EngineOptions;
use crate::model::{Footprint, available_memory};
use crate::ops::{Device, PAGE};

/// Tokens of keys and values that each sequence of a full batch gets if memory allows; more when one needs it.
const TYPICAL_TOKENS: usize = 4096;
/// Of the memory left after weights and scratch; the rest is headroom for allocations that are not accounted for.
const KV_FRACTION: f64 = 0.8;

/// The memory of one engine.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlan {
    pub options: EngineOptions,
    pub footprint: Footprint,
}

/// The most that an engine computes at once.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Of a step.
    pub sequences: usize,
    /// Tokens that each sequence may draft in a step.
    pub draft: usize,
}

/// The size of the KV cache; by default what a full batch needs, if it fits.
#[derive(Clone, Copy, Debug, Default)]
pub struct KvBudget {
    /// Each pool's size in tokens.
    pub tokens: Option<usize>,
    /// Fraction of the memory left after weights and scratch, for all pools of a device together.
    pub fraction: Option<f64>,
}

/// Plans the engines of `descriptions`, which take turns on `devices`.
///
/// # Errors
/// [`PanelError::Memory`], with every figure, when what falls on a device does not fit there: weights, scratch, and
/// one whole context each.
pub fn plan_memory(
    descriptions: &[&Description],
    devices: &[Device],
    batch: BatchLimits,
    budget: KvBudget,
) -> Result<Vec<MemoryPlan>, PanelError> {
    let mut plans = vec![None; descriptions.len()];
    for (place, device) in devices.iter().enumerate() {
        let here = || (place..descriptions.len()).step_by(devices.len());
        let share: Vec<&Description> = here().map(|index| descriptions[index]).collect();
        let planned = plan_device(&share, device, batch, budget)?;
        for (index, plan) in here().zip(planned) {
            plans[index] = Some(plan);
        }
    }
    Ok(plans.into_iter().flatten().collect())
}

fn plan_device(
    descriptions: &[&Description],
    device: &Device,
    batch: BatchLimits,
    budget: KvBudget,
) -> Result<Vec<MemoryPlan>, PanelError> {
    let machine = device.machine();
    let available = device.own_memory().unwrap_or_else(available_memory);
    let allot = |description: &Description, pages: usize| {
        let options = EngineOptions {
            pages,
            max_batch: batch.sequences,
            prefill_rows: machine.prefill_rows(),
            context: description.context,
            draft: batch.draft,
        };
        let (config, precision) = (&description.config, description.precision);
        let footprint = Footprint::of(config, precision, machine, pages, options.step_limits());
        MemoryPlan { options, footprint }
    };
    let fixed = |description: &&Description| allot(description, 0).footprint.total();
    let taken: usize = descriptions.iter().map(fixed).sum();
    let left = available.saturating_sub(taken) as f64;
    let fraction = budget.fraction.unwrap_or(KV_FRACTION);
    let share = left * fraction / descriptions.len().max(1) as f64;
    let plans: Vec<MemoryPlan> = descriptions
        .iter()
        .map(|description| {
            let context = description.context;
            let wanted = context + (batch.sequences - 1) * context.min(TYPICAL_TOKENS);
            let token_bytes =
                description.config.kv_bytes_per_token(machine, description.precision.kv);
            let affordable = (share / token_bytes as f64) as usize;
            let affordable = affordable.max(context);
            let tokens = match budget {
                KvBudget { tokens: Some(tokens), .. } => tokens,
                KvBudget { fraction: Some(_), .. } => affordable,
                KvBudget { .. } => wanted.min(affordable),
            };
            allot(description, tokens.div_ceil(PAGE).max(1))
        })
        .collect();
    let totals = plans.iter().map(|plan| plan.footprint.total());
    let needed: usize = totals.sum();
    if needed <= available {
        return Ok(plans);
    }
    let models = descriptions.iter().zip(&plans).map(|(description, plan)| {
        let name = &description.checkpoint.name;
        format!("{name}: {}", describe(&plan.footprint))
    });
    Err(PanelError::Memory {
        needed: gibibytes(needed),
        available: gibibytes(available),
        models: models.collect::<Vec<_>>().join("; "),
    })
}

/// `7.2 GiB of weights, 4.0 GiB of keys and values, 0.3 GiB of scratch`.
pub fn describe(footprint: &Footprint) -> String {
    let Footprint { weights, kv, scratch } = *footprint;
    format!(
        "{} of weights, {} of keys and values, {} of scratch",
        gibibytes(weights),
        gibibytes(kv),
        gibibytes(scratch)
    )
}

/// Bytes for people.
pub fn gibibytes(bytes: usize) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1000.0 {
        format!("{mebibytes:.1} MiB")
    } else {
        format!("{:.1} GiB", mebibytes / 1024.0)
    }
}
