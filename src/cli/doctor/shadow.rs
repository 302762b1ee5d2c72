//! `doctor --shadow`: runs every kernel on the GPU and on the emulator, and prints where their bytes differ. A family of kernels has
//! a process of its own, for a fault of one ends all that a process does on a GPU.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::whole_file;
use crate::ops::cuda::exercise::{FAMILIES, Family};
use crate::outside;

/// A line of a process's report; see crates/ops/src/cuda/shadow/report.rs.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Kernel {
        summary: String,
        plain: Counts,
        late: Counts,
    },
    Found {
        kernel: String,
        verdict: String,
        way: String,
        grid: [usize; 3],
        reason: Option<String>,
        #[serde(default)]
        regions: Vec<Region>,
    },
}

/// Runs of a kernel.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Counts {
    equal: usize,
    different: usize,
    nan: usize,
    fault: usize,
}

#[derive(Debug, Deserialize)]
struct Region {
    region: usize,
    what: String,
    words: usize,
    offset: usize,
    expected: Word,
    found: Word,
    suspect: String,
}

#[derive(Debug, Deserialize)]
struct Word {
    hex: String,
}

/// The last of these lines names what never came back.
#[derive(Debug, Deserialize)]
struct Running {
    running: String,
    way: String,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// With a fault of the driver, or of the emulator.
    Failed,
    /// It was ended when its time was over.
    Late,
}

impl Counts {
    fn bad(self) -> usize {
        self.different + self.fault
    }

    fn told(self) -> String {
        let Counts { equal, different, nan, fault } = self;
        let others =
            [(different, "different"), (nan, "no number in another way"), (fault, "fault")];
        let others = others.into_iter().filter(|(count, _)| *count > 0);
        let others = others.map(|(count, word)| format!(", {count} {word}"));
        format!("{equal} equal{}", others.collect::<String>())
    }
}

/// Compares all families, each for so long at most.
pub fn run_all(limit: Duration) -> Result<(), Failure> {
    let folder = whole_file::create_temporary("shadow")?;
    let compared = FAMILIES.into_iter().map(|family| compare(family, &folder, limit));
    let compared = compared.collect::<Result<Vec<_>, Failure>>();
    fs_err::remove_dir_all(&folder)?;
    let (kernels, bad) = compared?.into_iter().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    console::say(format!("{kernels} kernels compared, {bad} with a difference or fault"))?;
    match bad {
        0 => Ok(()),
        _ => Err(Failure::outcome("the GPU and the emulator do not agree", None)),
    }
}

/// Launches the kernels of one family, compared as the environment says.
pub fn run_child(name: &str) -> Result<(), Failure> {
    let family = Family::named(name).ok_or_else(|| {
        Failure::usage(format!("no family `{name}`"), "`doctor --shadow` has all")
    })?;
    Ok(family.exercise()?)
}

/// How many kernels were compared, and with how many something is wrong.
fn compare(family: Family, folder: &Path, limit: Duration) -> Result<(usize, usize), Failure> {
    let report = folder.join(format!("{}.jsonl", family.name));
    let child = Command::new(std::env::current_exe()?)
        .args(["doctor", "--shadow-child", family.name])
        .env("WARDROUND_CUDA_SHADOW", &report)
        .env("WARDROUND_CUDA_SHADOW_ONLY", family.kernels)
        .stdout(Stdio::null())
        .stderr(outside::create(folder.join("stderr"))?.into_parts().0)
        .spawn()?;
    let end = wait(child, limit)?;
    console::say(family.name)?;
    let mut counts = BTreeMap::new();
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for line in lines::<Line>(&report)? {
        match line {
            Line::Kernel { summary, plain, late } => {
                counts.insert(summary, (plain, late));
            }
            Line::Found { ref kernel, .. } => {
                first.entry(kernel.clone()).or_insert_with(|| line.told());
            }
        }
    }
    // Of what was launched beside the family nothing was compared.
    counts.retain(|_, (plain, late)| plain.told() != "0 equal" || late.told() != "0 equal");
    for (kernel, (plain, late)) in &counts {
        console::say(format!("  {kernel:34} plain {}; late {}", plain.told(), late.told()))?;
    }
    for (kernel, found) in &first {
        console::say(format!("  {kernel}: {found}"))?;
    }
    let mut bad = counts.values().filter(|(plain, late)| plain.bad() + late.bad() > 0).count();
    let mut told = counts.len();
    if end != End::Done || counts.is_empty() {
        let running = lines::<Running>(&folder.join(format!("{}.jsonl.running", family.name)))?;
        let last = running.last().map(|last| format!("{}, {}", last.running, last.way));
        let last = last.unwrap_or_else(|| "no kernel was launched".to_owned());
        let text = outside::text(folder.join("stderr"))?;
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("note:"));
        let said: Vec<&str> = lines.take(2).collect();
        let said = said.join(" ");
        let how = match end {
            End::Late => format!("hang: it did not end within {} seconds", limit.as_secs()),
            End::Failed | End::Done => format!("fault: {said}"),
        };
        console::say(format!("  {how}; last begun: {last}"))?;
        (bad, told) = (bad.max(1), told.max(1));
    }
    Ok((told, bad))
}

fn wait(mut child: Child, limit: Duration) -> Result<End, Failure> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { End::Done } else { End::Failed });
        }
        if started.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(End::Late);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whole lines: the last one of a process that was ended may be none. Nothing where there is no such file.
fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, Failure> {
    let text = match outside::text(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let unread = |error| Failure::mismatch(format!("{}: {error}", path.display()));
    whole.map(|line| serde_json::from_str(line).map_err(unread)).collect()
}

impl Line {
    /// Of a launch that differs or fails.
    fn told(&self) -> String {
        let Line::Found { verdict, way, grid, reason, regions, .. } = self else {
            return String::new();
        };
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let regions = regions.iter().map(|region| {
            let Region { region, what, words, offset, expected, found, suspect } = region;
            format!(
                "; region {region} ({what}): {words} words, at byte {offset} {} and not {}; {suspect}",
                found.hex, expected.hex
            )
        });
        format!("{verdict}, {way}, grid {grid:?}{reason}{}", regions.collect::<String>())
    }
}
