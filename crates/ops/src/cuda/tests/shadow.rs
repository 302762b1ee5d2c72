//! What compares a GPU with the emulator: faults that are planted in the emulator, as if it were a GPU, are named by kernel and
//! first difference, and what has none differs nowhere. And the sums that it takes the emulator to have.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use super::super::arguments::Arguments;
use super::super::driver::{Function, Stream};
use super::super::kernels::Kernels;
use super::super::launch::Launch;
use super::super::shadow::itself::Itself;
use super::super::shadow::{Asked, Fault, Late, POISON, PRODUCER, Shadow, Subject};
use super::sequences::Sequences;
use super::*;
use crate::cuda::kernels::Epilogue;

/// What a GPU does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// A tile of 32 words of what the argument of this number points to lies a word too far on.
    Shifted(usize),
    /// A word of an input is what it was before the kernel before wrote it.
    Stale,
    /// The same while the kernel reads it, and no longer.
    StaleRead,
    /// The kernel does not wait for the one before it.
    WaitSkipped,
    /// Every other run the last words of what this argument points to are not there yet when the launch is over.
    Fence(usize),
    /// The launch is none.
    Skipped,
    Refused,
}

#[derive(Debug)]
struct Wrong(&'static str, Planted, AtomicUsize);

impl Wrong {
    fn planted(&self, launch: &Launch) -> Planted {
        match launch.function.name().to_str().unwrap().starts_with(self.0) {
            true => self.1,
            false => Planted::Nothing,
        }
    }
}

impl Subject for Wrong {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        Itself.read(address, to)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        Itself.write(address, from)
    }

    fn has_late(&self) -> bool {
        true
    }

    fn plain(&self, launch: &Launch, arguments: &Arguments) -> Result<(), Fault> {
        match self.planted(launch) {
            Planted::Skipped => return Ok(()),
            Planted::Refused => {
                let reason = "too much of it".to_owned();
                return Err(Fault { reason, is_final: false });
            }
            _ => Itself.plain(launch, arguments)?,
        }
        if let Planted::Shifted(slot) = self.planted(launch) {
            let mut tile = [0; 128];
            self.read(arguments.slots()[slot], &mut tile)?;
            tile.rotate_right(4);
            self.write(arguments.slots()[slot], &tile)?;
        }
        if let Planted::Fence(slot) = self.planted(launch)
            && self.2.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
        {
            self.write(arguments.slots()[slot] + 32, &[0; 32])?;
        }
        Ok(())
    }

    fn late(
        &self,
        launch: &Launch,
        arguments: &Arguments,
        inputs: &[Late<'_>],
    ) -> Result<(), Fault> {
        let put = |late: &Late<'_>| self.write(late.address, late.bytes);
        if self.planted(launch) == Planted::WaitSkipped {
            let poisoned =
                |late: &Late<'_>| self.write(late.address, &vec![POISON; late.bytes.len()]);
            inputs.iter().try_for_each(poisoned)?;
            Itself.plain(launch, arguments)?;
            return inputs.iter().try_for_each(put);
        }
        let mut stale = inputs[0].bytes.to_vec();
        if matches!(self.planted(launch), Planted::Stale | Planted::StaleRead) {
            stale[8..12].fill(0xFF);
        }
        if self.planted(launch) == Planted::StaleRead {
            self.write(inputs[0].address, &stale)?;
            Itself.plain(launch, arguments)?;
            return put(&inputs[0]);
        }
        let mut inputs = inputs.to_vec();
        inputs[0] = Late { address: inputs[0].address, bytes: &stale };
        Itself.late(launch, arguments, &inputs)
    }
}

fn shadowed(folder: &TempDir, only: &str, subject: impl Subject + 'static) -> Cuda {
    let asked = Asked::new(folder.path().join("report.jsonl"), only);
    let shadow = Arc::new(Shadow::new(asked).unwrap());
    let stream = Stream::shadowed(shadow, Arc::new(subject));
    let kernels = Arc::new(Kernels::load(&stream).unwrap());
    let mut gpu = Cuda::on(stream, kernels).unwrap();
    gpu.warpgroups = true;
    gpu
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The report, after the last stream is gone: differences and faults, and kernels' lines.
fn report(folder: &TempDir) -> (Vec<Value>, Vec<Value>) {
    let lines = lines(&folder.path().join("report.jsonl"));
    lines.into_iter().partition(|line| line["summary"].is_null())
}

/// A norm of three rows, on which something is planted.
fn norm(only: &str, planted: Planted) -> (TempDir, Vec<f32>) {
    let folder = tempfile::tempdir().unwrap();
    let gpu = shadowed(&folder, only, Wrong("rms_norm", planted, AtomicUsize::new(0)));
    let x = gpu.hold(&noise(3 * 96, 1), 96, Numbers::Wide);
    let weight = gpu.vector(noise(96, 2)).unwrap();
    let mut out = gpu.buffer(3, 96, Numbers::Narrow).unwrap();
    gpu.rms_norm(&x, &weight, 1e-6, &mut out);
    let numbers = gpu.numbers(&out, 3, Numbers::Narrow);
    (folder, numbers)
}

#[test]
fn planted_faults_are_named_by_kernel_and_first_difference() {
    let (_, right) = norm("", Planted::Nothing);
    for (planted, way, region, offset, suspect) in [
        (Planted::Shifted(4), "plain", 2, 0, "lies 1 words further on: a tile is off"),
        (Planted::Skipped, "plain", 2, 0, "nothing was written"),
        (Planted::Fence(4), "plain", 2, 32, "a fence or barrier is missing"),
        (Planted::Stale, "late", 0, 8, "what lies there is stale"),
        (Planted::StaleRead, "late", 2, 0, "a stale read"),
        (Planted::WaitSkipped, "late", 2, 0, "its wait is missing"),
    ] {
        let (folder, found) = norm("", planted);
        assert!(bits(&found) == bits(&right), "what follows starts from what the emulator found");
        let (differences, summary) = report(&folder);
        assert_eq!(differences.len(), 1, "{planted:?}: {differences:?}");
        let line = &differences[0];
        assert_eq!(
            [&line["kernel"], &line["verdict"], &line["way"]],
            ["rms_norm", "different", way]
        );
        assert_eq!(line["grid"], serde_json::json!([3, 1, 1]));
        let first = &line["regions"][0];
        assert_eq!(first["region"], region, "{planted:?}: {line}");
        assert_eq!(first["offset"], offset, "{planted:?}: {line}");
        assert_eq!(first["what"], "activations");
        assert!(first["suspect"].as_str().unwrap().contains(suspect), "{planted:?}: {line}");
        let found = first["found"]["hex"].as_str().unwrap();
        match planted {
            Planted::Shifted(_) | Planted::StaleRead => {}
            Planted::Stale => assert_eq!(found, "ffffffff"),
            _ => assert_eq!(found, "00000000", "{planted:?}"),
        }
        if planted == Planted::Stale {
            assert_eq!(line["regions"][1]["words"], 48, "a row of the norm is no number: {line}");
        }
        let other = if way == "late" { "plain" } else { "late" };
        assert_eq!(summary.len(), 1);
        assert_eq!([&summary[0][way]["different"], &summary[0][other]["equal"]], [1, 1]);
    }
    let (folder, _) = norm("", Planted::Nothing);
    let (differences, summary) = report(&folder);
    assert_eq!(differences, Vec::<Value>::new());
    assert_eq!([&summary[0]["plain"]["equal"], &summary[0]["late"]["equal"]], [1, 1]);
    let running = lines(&folder.path().join("report.jsonl.running"));
    let ways: Vec<&str> = running.iter().map(|line| line["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["emulated", "plain", "late"]);
    assert_eq!(running[0]["running"], "rms_norm");
}

#[test]
fn a_launch_that_is_refused_is_a_fault_and_the_next_goes_on() {
    let (_, right) = norm("", Planted::Nothing);
    let (folder, found) = norm("", Planted::Refused);
    assert!(bits(&found) == bits(&right));
    let (faults, summary) = report(&folder);
    assert_eq!([&faults[0]["verdict"], &faults[0]["reason"]], ["fault", "too much of it"]);
    assert_eq!([&summary[0]["plain"]["fault"], &summary[0]["late"]["equal"]], [1, 1]);
}

#[test]
fn kernels_that_are_not_asked_for_run_on_the_emulator_alone() {
    let (_, right) = norm("", Planted::Nothing);
    let (folder, found) = norm("matmul", Planted::Skipped);
    assert!(bits(&found) == bits(&right));
    let (differences, summary) = report(&folder);
    assert_eq!(differences, Vec::<Value>::new());
    assert_eq!([&summary[0]["emulated"], &summary[0]["plain"]["equal"]], [1, 0]);
}

/// Products by every kernel, whole steps of attention, draws and scores: nothing differs, and none reads before its wait what it
/// must not.
#[test]
fn kernels_differ_nowhere_from_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let gpu = shadowed(&folder, "", Itself);
    for kept in KEPT {
        let layer = matmul::Layer::new(&gpu, (144, 544), kept);
        for rows in [5, 33, 130] {
            layer.multiply_last(&gpu, Epilogue::Plain, (rows, matmul::ROOMS[3]));
            layer.multiply_last(&gpu, Epilogue::Plain, (rows, matmul::ROOMS[0]));
        }
        layer.multiply_in_waves(&gpu, Epilogue::Plain, 9);
        for cut in matmul::cuts(&gpu) {
            layer.multiply_cut(&gpu, Epilogue::Plain, 130, cut);
        }
    }
    let sequences = Sequences::new(&[290, 40], 3);
    let case =
        attention::Case { group: 4, kv_heads: 1, head_dim: 64, window: None, both_ways: false };
    case.run(&gpu, &sequences, &case.qkv(&sequences), &[sequences.rows() - 6, 6]);
    sampler::scores(&gpu, 5000, 20..25, 20);
    drop(gpu);
    let (differences, summary) = report(&folder);
    assert_eq!(differences, Vec::<Value>::new());
    let is_met = |kernel: &str, way: &str| {
        let mut lines =
            summary.iter().filter(|line| line["summary"].as_str().unwrap().starts_with(kernel));
        lines.any(|line| line[way]["equal"] != 0)
    };
    for kernel in [
        "matmul_small",
        "matmul_medium",
        "matmul_wave",
        "matmul_warpgroup",
        "rotate",
        "attend_chunks",
    ] {
        assert!(is_met(kernel, "plain") && is_met(kernel, "late"), "{kernel}");
    }
    assert!(is_met("score", "plain") && !is_met("score", "late"), "it never starts early");
}

/// As many threads as a cluster has that draws on a GPU.
#[test]
fn clusters_of_eight_thousand_threads_are_emulated() {
    let from: Vec<u128> = (0..10_001).collect();
    let mut to = vec![0u128; from.len()];
    let pieces = [to.as_mut_ptr() as u64, from.as_ptr() as u64, 16 * 10_000 + 5];
    let launch = Launch { cluster: 8, ..Launch::new(Function::of(PRODUCER), [16, 1, 1], 1024) };
    let list = Arguments::default().address(pieces.as_ptr() as u64).int(1).int(0);
    gpu().stream.launch(launch, list);
    assert!(to[..10_000] == from[..10_000]);
    assert_eq!(to[10_000], from[10_000] & 0xFF_FFFF_FFFF);
}
