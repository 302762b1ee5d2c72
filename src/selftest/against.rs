//! A model on a device beside candle's operations on the CPU, in f32: the logits of each prompt's last token and of greedy ones after it.

use itertools::Itertools;

use super::CONTEXT;
use super::calls::{self, Call};
use crate::diagnosis::Failure;
use crate::experiment::hardware::Compute;
use crate::hub::{HubOptions, Kind, resolve};
use crate::model::{Probe, best, compute_logits};
use crate::ops::candle::Place;
use crate::ops::{Candle, Device, Precision, StoredType};
use crate::panel::backbone::Description;
use crate::record::Message;

/// Greedy tokens after each prompt.
const TOKENS: usize = 15;
/// Positions a step.
const ROWS: usize = 64;

/// What came of a prompt.
pub struct Compared {
    pub line: String,
    pub is_near: bool,
}

/// How far logits may be apart, as a share of the row's largest: by the roundings of f32, or, where weights or keys and values are bf16, by
/// theirs, four a layer, which later layers carry on.
fn tolerance(precision: Precision) -> f32 {
    let is_wide = [precision.stored, precision.kv] == [StoredType::F32; 2];
    if is_wide { 0.001 } else { 0.06 }
}

/// A line for each prompt; none for an encoder.
///
/// # Errors
/// A model that is not there or none; a machine that fails or has too little memory.
pub fn compare(
    member: &str,
    compute: &Compute,
    hub: &HubOptions,
) -> Result<Vec<Compared>, Failure> {
    let checkpoint = resolve(member, hub)?;
    if checkpoint.card.is_some_and(|card| card.kind == Kind::Encoder) {
        return Ok(Vec::new());
    }
    let device = compute.on.one_device()?;
    let model = Description::read(checkpoint, compute.precision(), device.machine(), CONTEXT)?;
    let (config, files) = (&model.config, &model.checkpoint.files.weights);
    let calls: Vec<Call> = calls::all().into_iter().unique_by(|call| call.prompt.clone()).collect();
    let sequence = |call: &Call| -> Result<Probe, Failure> {
        let tokens = model.tokenise(&[Message::new("user", call.prompt.as_str())], false)?;
        let last = tokens.len() - 1;
        Ok(Probe::new(tokens, last, TOKENS))
    };
    let mut ours = calls.iter().map(sequence).collect::<Result<Vec<_>, _>>()?;
    compute_logits(&device, config, files, model.precision, ROWS, &mut ours)?;
    let same =
        |ours: &Probe| Probe::new(ours.tokens.clone(), ours.tokens.len() - ours.logits.len(), 0);
    let mut theirs: Vec<Probe> = ours.iter().map(same).collect();
    let candle = Device::Candle(Candle::open(Place::Cpu, compute.on.threads())?);
    compute_logits(&candle, config, files, StoredType::F32.into(), ROWS, &mut theirs)?;
    let most = tolerance(model.precision);
    let compared = calls.iter().zip(ours.iter().zip(&theirs)).map(|(call, (ours, theirs))| {
        let rows = || ours.logits.iter().zip(&theirs.logits);
        let off = rows().map(|(ours, theirs)| distance(ours, theirs)).fold(0.0, f32::max);
        let equal = rows().filter(|(ours, theirs)| best(ours) == best(theirs)).count();
        let (name, count, is_near) = (call.name, rows().count(), off <= most);
        let word = if is_near { "within" } else { "DIFFER by" };
        let line = format!(
            "{member}  {name}: logits {word} {off:.1e} of the largest (allowed: {most}), {equal} of {count} greedy tokens equal"
        );
        Compared { line, is_near }
    });
    Ok(compared.collect())
}

/// The greatest difference, as a share of the largest of `theirs`; infinite where there is none.
fn distance(ours: &[f32], theirs: &[f32]) -> f32 {
    let largest = theirs.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
    let off = ours.iter().zip(theirs).map(|(ours, theirs)| (ours - theirs).abs() / largest);
    off.fold(0.0, |most, off| if off.is_nan() { f32::INFINITY } else { most.max(off) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_far() {
        assert_eq!(distance(&[1.0, -4.0], &[2.0, -4.0]), 0.25);
        assert_eq!(distance(&[f32::NAN, 1.0], &[1.0, 1.0]), f32::INFINITY);
        let narrow = Precision { kv: StoredType::Bf16, ..StoredType::F32.into() };
        assert!(tolerance(StoredType::F32.into()) < tolerance(narrow));
    }
}
