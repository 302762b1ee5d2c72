//! What is told of compared launches: a line of JSON for each that differs or fails, and one for each kernel.
//!
//! Several streams and processes may write to one file: each line is one write at its end. A kernel's line counts from the
//! start of its stream's GPU on, and a later one of the same `of` takes its place.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::super::launch::Launch;
use super::{Found, Way};
use crate::OpsError;

/// Launches after which the kernels' lines are written again.
const LAUNCHES: usize = 500;

#[derive(Debug)]
pub struct Report {
    file: File,
    /// What runs now: where nothing comes back, the last line names it.
    running: File,
    /// Which of this process's it is.
    number: usize,
    launches: AtomicUsize,
    tallies: Mutex<BTreeMap<String, Tally>>,
}

/// Of a kernel.
#[derive(Debug, Default)]
pub struct Tally {
    plain: Verdicts,
    late: Verdicts,
    /// Launches that were not compared.
    pub emulated: usize,
}

#[derive(Debug, Default)]
pub struct Verdicts {
    equal: usize,
    different: usize,
    /// Where all that differs is how no number is written.
    nan: usize,
    pub faults: usize,
}

impl Tally {
    pub fn of(&mut self, way: Way) -> &mut Verdicts {
        match way {
            Way::Plain => &mut self.plain,
            Way::Late => &mut self.late,
        }
    }
}

impl Verdicts {
    pub fn note(&mut self, found: &[Found]) {
        *match verdict(found) {
            "equal" => &mut self.equal,
            "nan" => &mut self.nan,
            _ => &mut self.different,
        } += 1;
    }

    fn told(&self) -> Value {
        let Verdicts { equal, different, nan, faults } = self;
        json!({ "equal": equal, "different": different, "nan": nan, "fault": faults })
    }
}

fn verdict(found: &[Found]) -> &'static str {
    match found {
        [] => "equal",
        _ if found.iter().all(|found| found.difference.both_nan == found.difference.words) => "nan",
        _ => "different",
    }
}

fn append(path: &Path) -> Result<File, OpsError> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|error| OpsError::Device {
        device: "cuda".to_owned(),
        reason: format!("WARDROUND_CUDA_SHADOW: {}: {error}", path.display()),
    })
}

impl Report {
    /// # Errors
    /// A file that cannot be opened.
    pub fn open(path: &Path) -> Result<Report, OpsError> {
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let mut running = path.as_os_str().to_owned();
        running.push(".running");
        Ok(Report {
            file: append(path)?,
            running: append(&PathBuf::from(running))?,
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            launches: AtomicUsize::new(0),
            tallies: Mutex::default(),
        })
    }

    fn tallies(&self) -> MutexGuard<'_, BTreeMap<String, Tally>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of which process and GPU a line is.
    fn of(&self) -> String {
        format!("{}.{}", std::process::id(), self.number)
    }

    pub fn running(&self, kernel: &str, way: &str) {
        write(&self.running, &json!({ "running": kernel, "way": way, "of": self.of() }));
    }

    pub fn count(&self, kernel: &str, note: impl FnOnce(&mut Tally)) {
        note(self.tallies().entry(kernel.to_owned()).or_default());
    }

    /// After each launch.
    pub fn count_up(&self) {
        if (self.launches.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(LAUNCHES) {
            self.summarise();
        }
    }

    fn line(&self, kernel: &str, launch: &Launch, verdict: &str) -> Value {
        json!({
            "kernel": kernel,
            "verdict": verdict,
            "grid": launch.grid,
            "threads": launch.threads,
            "cluster": launch.cluster,
            "shared_bytes": launch.shared_bytes,
            "launch": self.launches.load(Ordering::Relaxed),
            "of": self.of(),
        })
    }

    /// `way`: none where memory could not be read or written.
    pub fn fault(&self, kernel: &str, launch: &Launch, way: Option<Way>, reason: &str) {
        let mut line = self.line(kernel, launch, "fault");
        line["way"] = json!(way.map_or("copies", Way::name));
        line["reason"] = json!(reason);
        write(&self.file, &line);
    }

    pub fn different(&self, kernel: &str, launch: &Launch, way: Way, found: &[Found]) {
        let mut line = self.line(kernel, launch, verdict(found));
        line["way"] = json!(way.name());
        line["regions"] = found.iter().map(region).collect();
        write(&self.file, &line);
    }

    /// A line for each kernel.
    pub fn summarise(&self) {
        for (kernel, tally) in self.tallies().iter() {
            let Tally { plain, late, emulated } = tally;
            let [plain, late] = [plain.told(), late.told()];
            let of = self.of();
            let line = json!({ "summary": kernel, "plain": plain, "late": late, "emulated": emulated, "of": of });
            write(&self.file, &line);
        }
    }
}

fn region(found: &Found) -> Value {
    let Found { region, held, difference, suspect } = found;
    let number = |word: u32| json!({ "hex": format!("{word:08x}"), "f32": f32::from_bits(word).to_string() });
    json!({
        "region": region,
        "what": held.what,
        "region_bytes": held.bytes,
        "bytes": difference.bytes,
        "words": difference.words,
        "both_nan": difference.both_nan,
        "offset": difference.offset,
        "expected": number(difference.expected),
        "found": number(difference.found),
        "f32_steps": difference.f32_steps,
        "bf16_steps": difference.bf16_steps,
        "suspect": suspect.words(),
    })
}

/// A report that cannot be written any more says less than it should, which its reader sees.
fn write(mut file: &File, line: &Value) {
    let _ = file.write_all(format!("{line}\n").as_bytes());
}

impl Drop for Report {
    fn drop(&mut self) {
        self.summarise();
    }
}
