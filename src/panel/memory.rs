//! How many pages each engine gets, and whether all of it fits, before any of it is loaded.

use super::PanelError;
use super::backbone::Description;
use crate::engine::EngineOptions;
use crate::model::{Footprint, available_memory};
use crate::ops::PAGE;

/// Rows of prompts a step.
pub const PREFILL_ROWS: usize = 512;
/// Tokens of keys and values that each sequence of a full batch gets if memory allows; more when one needs it.
const TYPICAL_TOKENS: usize = 4096;
/// The share of what is left beside weights and scratch that keys and values may take.
const KV_SHARE: f64 = 0.8;

/// What one engine takes.
#[derive(Clone, Copy, Debug)]
pub struct Allotment {
    pub options: EngineOptions,
    pub footprint: Footprint,
}

/// Plans the engines of `descriptions` together. `kv_tokens` fixes each pool's size in tokens.
///
/// # Errors
/// [`PanelError::Memory`], with every figure, when weights and scratch and one whole context each do not fit.
pub fn plan_memory(
    descriptions: &[&Description],
    max_batch: usize,
    kv_tokens: Option<usize>,
) -> Result<Vec<Allotment>, PanelError> {
    let available = available_memory();
    let fixed = |description: &Description| {
        Footprint::of(
            &description.config,
            description.precision,
            0,
            PREFILL_ROWS + max_batch,
            max_batch,
        )
    };
    let taken: usize = descriptions
        .iter()
        .map(|description| fixed(description).total())
        .sum();
    let share =
        available.saturating_sub(taken) as f64 * KV_SHARE / descriptions.len().max(1) as f64;
    let allotments: Vec<Allotment> = descriptions
        .iter()
        .map(|description| {
            let context = description.context;
            let wanted = context + (max_batch - 1) * context.min(TYPICAL_TOKENS);
            let affordable = (share / description.config.kv_bytes_per_token() as f64) as usize;
            let tokens = kv_tokens.unwrap_or(wanted.min(affordable.max(context)));
            let pages = tokens.div_ceil(PAGE).max(1);
            let options = EngineOptions {
                pages,
                max_batch,
                prefill_rows: PREFILL_ROWS,
                context,
            };
            let rows = PREFILL_ROWS + max_batch;
            let footprint = Footprint::of(
                &description.config,
                description.precision,
                pages,
                rows,
                max_batch,
            );
            Allotment { options, footprint }
        })
        .collect();
    let needed: usize = allotments
        .iter()
        .map(|allotment| allotment.footprint.total())
        .sum();
    if needed > available {
        let models = descriptions
            .iter()
            .zip(&allotments)
            .map(|(description, allotment)| {
                format!(
                    "{}: {}",
                    description.checkpoint.name,
                    describe(&allotment.footprint)
                )
            });
        return Err(PanelError::Memory {
            needed: gibibytes(needed),
            available: gibibytes(available),
            models: models.collect::<Vec<_>>().join("; "),
        });
    }
    Ok(allotments)
}

/// `7.2 GiB of weights, 4.0 GiB of keys and values, 0.3 GiB of scratch`.
pub fn describe(footprint: &Footprint) -> String {
    let Footprint {
        weights,
        kv,
        scratch,
    } = *footprint;
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
