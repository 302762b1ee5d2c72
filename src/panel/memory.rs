//! Memory planning: how many KV-cache pages each engine gets, and whether everything fits, before anything is loaded.

use super::backbone::Description;
use crate::diagnosis::Failure;
use crate::engine::EngineOptions;
use crate::model::{Footprint, available_memory};
use crate::ops::{Device, Machine, PAGE};

/// KV-cache tokens planned for each sequence of a full batch but one, which has room for its whole context.
const TYPICAL_TOKENS: usize = 4096;
/// Fraction of the memory left after weights and scratch; the rest is headroom for allocations that are not accounted for.
const KV_FRACTION: f64 = 0.8;

/// States of recurrent layers that are kept for later prompts, of each sequence of a full batch, at most.
const SNAPSHOTS: usize = 4;
/// The part of that memory which states may take where keys and values want all of it.
const SNAPSHOT_FRACTION: f64 = 0.25;

/// The memory of one engine.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlan {
    pub options: EngineOptions,
    pub footprint: Footprint,
}

/// The default batch size.
pub const DEFAULT_BATCH: usize = 16;
/// Default batch sizes of a GPU, of which the first whose KV cache fits is taken. Larger ones are not captured as CUDA graphs.
const GPU_BATCHES: [usize; 3] = [128, 64, 32];
/// Typical tokens of a debate's call, prompt and completion, without those of pages that it shares.
const CALL_TOKENS: usize = 1536;

/// What each engine may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The batch size; `None`: what the devices' memory allows.
    pub sequences: Option<usize>,
    /// Tokens that each sequence may draft in a step.
    pub draft: usize,
    /// The size of its KV cache; `None`: what a full batch needs, if it fits.
    pub kv_tokens: Option<usize>,
    /// Whether it serves: there is room for log-probabilities of prompts and of forced tokens, and the memory is allocated at the start, so
    /// that the process does not grow later.
    pub serves: bool,
}

/// Plans the engines of `descriptions`, assigned to `devices` in turn, with room for the encoders and rerankers that stay loaded `beside`
/// them on the first device. All engines have the same batch size.
///
/// # Errors
/// Every figure, when the models of a device do not fit there: weights, scratch, and the KV cache of one whole context each.
pub fn plan_memory(
    descriptions: &[&Description],
    devices: &[Device],
    limits: Limits,
    beside: &[(String, Footprint)],
) -> Result<Vec<MemoryPlan>, Failure> {
    let plan_batch = |sequences| -> Result<Vec<MemoryPlan>, Failure> {
        let limits = Limits { sequences: Some(sequences), ..limits };
        let mut plans = vec![None; descriptions.len()];
        for (place, device) in devices.iter().enumerate() {
            let here = || (place..descriptions.len()).step_by(devices.len());
            let share: Vec<&Description> = here().map(|index| descriptions[index]).collect();
            let beside = if place == 0 { beside } else { &[] };
            let planned = plan_device(&share, device, limits, beside)?;
            for (index, plan) in here().zip(planned) {
                plans[index] = Some(plan);
            }
        }
        Ok(plans.into_iter().flatten().collect())
    };
    let is_gpu = devices.iter().all(|device| device.machine() == Machine::Cuda);
    let kv_tokens = |sequences| {
        let plans = plan_batch(sequences).ok()?;
        plans.iter().map(|plan| plan.options.pages * PAGE).min()
    };
    let sequences = match limits.sequences {
        Some(sequences) => sequences,
        None if is_gpu => gpu_batch(kv_tokens),
        None => DEFAULT_BATCH,
    };
    plan_batch(sequences)
}

/// The largest batch size with which every KV cache still holds a typical call for each sequence. `kv_tokens`: the tokens of the smallest
/// cache at a batch size; `None` where the models do not fit.
fn gpu_batch(kv_tokens: impl Fn(usize) -> Option<usize>) -> usize {
    let fits = |sequences: &usize| {
        kv_tokens(*sequences).is_some_and(|tokens| tokens >= sequences * CALL_TOKENS)
    };
    GPU_BATCHES.into_iter().find(fits).unwrap_or(DEFAULT_BATCH)
}

fn plan_device(
    descriptions: &[&Description],
    device: &Device,
    limits: Limits,
    beside: &[(String, Footprint)],
) -> Result<Vec<MemoryPlan>, Failure> {
    let machine = device.machine();
    let sequences = limits.sequences.unwrap_or(DEFAULT_BATCH);
    let available = device.own_memory().unwrap_or_else(available_memory);
    let allot = |description: &Description, pages: usize, slots: usize| {
        let options = EngineOptions {
            pages,
            max_batch: sequences,
            prefill_rows: machine.prefill_rows(),
            context: description.context,
            draft: limits.draft,
            known_logit_rows: if limits.serves { machine.known_logit_rows() } else { 0 },
            slots,
            pages_at_start: limits.serves,
        };
        let (config, precision) = (&description.config, description.precision);
        let limits = options.step_limits();
        let footprint = Footprint::of(config, precision, machine, pages, slots, limits);
        MemoryPlan { options, footprint }
    };
    let fixed = |description: &&Description| allot(description, 0, sequences).footprint.total();
    let searching: usize = beside.iter().map(|(_, footprint)| footprint.total()).sum();
    let taken: usize = searching + descriptions.iter().map(fixed).sum::<usize>();
    let left = available.saturating_sub(taken) as f64;
    let share = left * KV_FRACTION / descriptions.len().max(1) as f64;
    let plans: Vec<MemoryPlan> = descriptions
        .iter()
        .map(|description| {
            let context = description.context;
            let wanted = context + (sequences - 1) * context.min(TYPICAL_TOKENS);
            let token_bytes =
                description.config.kv_bytes_per_token(machine, description.precision.kv);
            // States that are kept for prompts that begin alike: as many as keys and values leave room for.
            let state_bytes = description.config.state_bytes().max(1);
            let room = (share - (wanted * token_bytes) as f64).max(share * SNAPSHOT_FRACTION);
            let snapshots = (SNAPSHOTS * sequences).min((room / state_bytes as f64) as usize);
            let share = share - (snapshots * description.config.state_bytes()) as f64;
            let affordable = (share / token_bytes as f64) as usize;
            let affordable = affordable.max(context);
            let tokens = limits.kv_tokens.unwrap_or(wanted.min(affordable));
            allot(description, tokens.div_ceil(PAGE).max(1), sequences + snapshots)
        })
        .collect();
    let engines = descriptions.iter().zip(&plans);
    let engines =
        engines.map(|(description, plan)| (&*description.checkpoint.name, plan.footprint));
    let others = beside.iter().map(|(name, footprint)| (&**name, *footprint));
    expect_room(&engines.chain(others).collect::<Vec<_>>(), available, !beside.is_empty())?;
    Ok(plans)
}

fn expect_room(
    parts: &[(&str, Footprint)],
    available: usize,
    searches: bool,
) -> Result<(), Failure> {
    let needed: usize = parts.iter().map(|(_, footprint)| footprint.total()).sum();
    if needed <= available {
        return Ok(());
    }
    let models = parts.iter().map(|(name, footprint)| format!("{name}: {}", describe(footprint)));
    let (needed, available) = (gibibytes(needed), gibibytes(available));
    let models = models.collect::<Vec<_>>().join("; ");
    let panel = "lower --max-batch, --context or --kv-tokens, or keep weights smaller: --dtype bf16, --quant q8_0 or q4_k";
    let search = "; or search without a reranker (--set rerank=off)";
    let hint = format!("{panel}{}", if searches { search } else { "" });
    let message = format!("the panel needs {needed} of memory, and {available} is free ({models})");
    Err(Failure::usage(message, &hint))
}

/// `7.2 GiB of weights, 4.0 GiB of keys and values, 0.3 GiB of scratch`.
pub fn describe(footprint: &Footprint) -> String {
    let Footprint { weights, kv, scratch } = *footprint;
    format!(
        "{} of weights, {} of KV cache, {} of scratch",
        gibibytes(weights),
        gibibytes(kv),
        gibibytes(scratch)
    )
}

/// Bytes as `7.2 GiB` or `300.0 MiB`.
pub fn gibibytes(bytes: usize) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1000.0 {
        format!("{mebibytes:.1} MiB")
    } else {
        format!("{:.1} GiB", mebibytes / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{HubOptions, resolve};
    use crate::model::{Family, WantedPrecision};
    use crate::ops::Cpu;
    use crate::synth::{Recipe, Shape, write_checkpoint};

    const GIB: usize = 1 << 30;

    fn description(directory: &std::path::Path) -> Description {
        let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_checkpoint(&recipe, directory).unwrap();
        let hub = HubOptions::from_lookup(|_| None).unwrap();
        let checkpoint = resolve(directory.to_str().unwrap(), &hub).unwrap();
        let device = Device::Cpu(Cpu::new(1).unwrap());
        Description::read(checkpoint, WantedPrecision::default(), device.machine(), 4096).unwrap()
    }

    fn reranker(bytes: usize) -> [(String, Footprint); 1] {
        [("reranker r".to_owned(), Footprint { weights: bytes, ..Footprint::default() })]
    }

    #[test]
    fn a_gpus_batch_is_the_largest_whose_calls_its_kv_cache_holds() {
        let left_by =
            |each: usize| move |sequences: usize| 200_000usize.checked_sub(each * sequences);
        assert_eq!(gpu_batch(left_by(0)), 128);
        assert_eq!(gpu_batch(left_by(500)), 64);
        assert_eq!(gpu_batch(left_by(2000)), 32);
        assert_eq!(gpu_batch(left_by(100_000)), DEFAULT_BATCH);
    }

    #[test]
    fn what_stays_beside_a_panel_has_room_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let description = description(folder.path());
        let devices = [Device::Cpu(Cpu::new(1).unwrap())];
        let plan = |bytes: usize| {
            let limits = Limits { sequences: Some(4), ..Limits::default() };
            plan_memory(&[&description], &devices, limits, &reranker(bytes))
        };
        let error = plan(1 << 20 << 30).unwrap_err();
        let (told, hint) = (error.to_string(), error.hint().unwrap());
        assert!(told.contains("the panel needs 1048576."), "{told}");
        assert!(told.contains("reranker r: 1048576.0 GiB of weights"), "{told}");
        assert!(hint.contains("--set rerank=off"), "{hint}");
        assert!(plan(GIB >> 4).is_ok());
    }
}
