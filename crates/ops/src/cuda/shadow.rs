//! Every launch on the GPU and on the emulator, compared byte by byte: builds with both, where `WARDROUND_CUDA_SHADOW` names
//! a file for the report.
//!
//! A launch's regions are brought to the host, where the emulator says what must become of them. The GPU then runs it twice:
//! alone, and behind a kernel that lets it start at once and writes its inputs late, over bytes that mean nothing. What the
//! emulator found is what the next launch starts from, so that a kernel answers for itself alone. There are no graphs.
//!
//! In builds without a driver the emulator is compared with itself, which tries out what is here.

mod asked;
mod difference;
pub mod emulator;
mod host;
#[cfg(not(feature = "cuda"))]
pub mod itself;
#[cfg(feature = "cuda")]
mod names;
mod regions;
mod report;
mod suspect;

use std::ffi::CStr;
use std::sync::Arc;

use super::arguments::Arguments;
use super::launch::Launch;
use crate::OpsError;
pub use asked::Asked;
use difference::Difference;
use emulator::Sums;
use host::Host;
use regions::{Held, Regions};
use report::{Report, Tally};
use suspect::{Bytes, Suspect};

/// The kernel of kernels/shadow.cu, and what it waits before it writes.
pub const PRODUCER: &CStr = c"shadow_produce";
pub const LATE_NANOSECONDS: usize = 20_000;
/// Bytes that mean nothing: no number, as f32 and as bf16.
pub const POISON: u8 = 0xFF;

/// What runs the launches that are compared with the emulator's.
pub trait Subject: std::fmt::Debug + Send + Sync {
    /// Once all before is done.
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault>;

    /// Done when it returns.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault>;

    /// Whether a kernel may start before the one before it ends.
    fn has_late(&self) -> bool;

    /// Runs the launch by itself, and waits for it.
    fn plain(&self, launch: &Launch, arguments: &Arguments) -> Result<(), Fault>;

    /// Poisons these regions, starts a kernel that puts back what belongs there, and the launch behind it; waits.
    fn late(
        &self,
        launch: &Launch,
        arguments: &Arguments,
        inputs: &[Late<'_>],
    ) -> Result<(), Fault>;
}

/// A region that is written late, and what belongs there.
#[derive(Clone, Copy, Debug)]
pub struct Late<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
}

/// What a driver says of a call or launch.
#[derive(Clone, Debug)]
pub struct Fault {
    pub reason: String,
    /// Whether nothing works any more.
    pub is_final: bool,
}

/// How the subject runs a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Plain,
    Late,
}

/// Where two runs of a launch differ.
#[derive(Debug)]
pub struct Found {
    /// Which of the launch's regions, in the order of its arguments.
    pub region: usize,
    pub held: Held,
    pub difference: Difference,
    pub suspect: Suspect,
}

/// Of one GPU: its streams share it.
#[derive(Debug)]
pub struct Shadow {
    asked: Asked,
    report: Report,
    regions: Regions,
    #[cfg(feature = "cuda")]
    pub names: names::Names,
}

impl Shadow {
    /// # Errors
    /// A report that cannot be written.
    pub fn asked() -> Result<Option<Arc<Shadow>>, OpsError> {
        match Asked::of_environment() {
            Some(asked) => Shadow::new(asked).map(|shadow| Some(Arc::new(shadow))),
            None => Ok(None),
        }
    }

    pub fn new(asked: Asked) -> Result<Shadow, OpsError> {
        let report = Report::open(&asked.report)?;
        Ok(Shadow {
            asked,
            report,
            regions: Regions::default(),
            #[cfg(feature = "cuda")]
            names: names::Names::default(),
        })
    }

    pub fn allocated(&self, address: u64, bytes: usize, what: &'static str) {
        self.regions.add(Held::new(address, bytes, what));
    }

    pub fn freed(&self, address: u64) {
        self.regions.remove(address);
    }

    /// Runs a launch on both, and leaves in the subject's memory what the emulator found.
    ///
    /// # Errors
    /// When the subject can do nothing more; the report says why.
    pub fn launch(
        &self,
        subject: &dyn Subject,
        name: &CStr,
        launch: &Launch,
        arguments: &Arguments,
    ) -> Result<(), String> {
        let run = Run { shadow: self, subject, kernel: &name.to_string_lossy(), launch, arguments };
        let tried = run.all(name);
        self.report.count_up();
        tried.map_err(|fault| {
            self.report.fault(run.kernel, launch, None, &fault.reason);
            self.report.summarise();
            format!("kernel `{}`: {}", run.kernel, fault.reason)
        })
    }
}

/// A launch's regions: what they are, what lay there before it, and what has to lie there after it.
#[derive(Clone, Copy)]
struct Known<'a> {
    touched: &'a [Held],
    before: &'a [Host],
    expected: &'a [Host],
}

/// A launch that is compared.
struct Run<'a> {
    shadow: &'a Shadow,
    subject: &'a dyn Subject,
    kernel: &'a str,
    launch: &'a Launch,
    arguments: &'a Arguments,
}

impl Run<'_> {
    fn all(&self, name: &CStr) -> Result<(), Fault> {
        let Shadow { asked, report, regions, .. } = self.shadow;
        let touched = regions.touched(self.arguments.slots());
        let inputs = self.take(&touched)?;
        let mut expected = inputs.clone();
        report.running(self.kernel, "emulated");
        self.emulate(name, &touched, &mut expected);
        let mut lies = inputs.clone();
        if asked.compares(self.kernel) {
            let known = Known { touched: &touched, before: &inputs, expected: &expected };
            lies =
                self.run(Way::Plain, known, || self.subject.plain(self.launch, self.arguments))?;
            let is_late = |held: &Held| self.launch.early && held.is_made_by_kernels();
            if self.subject.has_late() && touched.iter().any(is_late) {
                self.put(&touched, &mut lies, &inputs)?;
                let pairs = touched.iter().zip(&inputs).filter(|(held, _)| is_late(held));
                let late =
                    pairs.map(|(held, input)| Late { address: held.address, bytes: input.bytes() });
                let late: Vec<Late<'_>> = late.collect();
                lies = self.run(Way::Late, known, || {
                    self.subject.late(self.launch, self.arguments, &late)
                })?;
            }
        } else {
            report.count(self.kernel, |tally| tally.emulated += 1);
        }
        self.put(&touched, &mut lies, &expected)?;
        for (held, _) in
            touched.iter().zip(inputs.iter().zip(&expected)).filter(|(_, (a, b))| a != b)
        {
            regions.note_written(held.address);
        }
        Ok(())
    }

    /// What lies in the regions.
    fn take(&self, touched: &[Held]) -> Result<Vec<Host>, Fault> {
        let copy = |held: &Held| {
            let mut host = Host::new(held.bytes);
            self.subject.read(held.address, host.bytes_mut()).map(|()| host)
        };
        touched.iter().map(copy).collect()
    }

    /// Has the regions, where `lies` is, hold `wanted`.
    fn put(&self, touched: &[Held], lies: &mut [Host], wanted: &[Host]) -> Result<(), Fault> {
        for (held, (lies, wanted)) in touched.iter().zip(lies.iter_mut().zip(wanted)) {
            if lies != wanted {
                self.subject.write(held.address, wanted.bytes())?;
                lies.clone_from(wanted);
            }
        }
        Ok(())
    }

    /// The launch on copies.
    fn emulate(&self, name: &CStr, touched: &[Held], copies: &mut [Host]) {
        let addresses: Vec<u64> = copies.iter_mut().map(Host::address).collect();
        let mut arguments = self.arguments.map(|slot| {
            let place = regions::place(touched, slot);
            place.map_or(slot, |(region, offset)| addresses[region] + offset)
        });
        emulator::run(name, self.launch, &mut arguments, Sums::Hopper);
    }

    /// Lets the subject run the launch in this way, and tells what is not as the emulator has it. What then lies in the regions.
    fn run(
        &self,
        way: Way,
        known: Known<'_>,
        subject: impl Fn() -> Result<(), Fault>,
    ) -> Result<Vec<Host>, Fault> {
        let Known { touched, before, expected } = known;
        let report = &self.shadow.report;
        report.running(self.kernel, way.name());
        if let Err(fault) = subject() {
            report.fault(self.kernel, self.launch, Some(way), &fault.reason);
            report.count(self.kernel, |tally| tally.of(way).faults += 1);
            if fault.is_final {
                return Err(fault);
            }
            return self.take(touched);
        }
        let lies = self.take(touched)?;
        let mut again = lies.clone();
        if lies != expected {
            self.put(touched, &mut again, before)?;
            // What does not end the subject's life is told of the first run.
            if let Err(fault) = subject()
                && fault.is_final
            {
                return Err(fault);
            }
            again = self.take(touched)?;
        }
        let is_steady = again == lies;
        let found = (0..touched.len()).filter_map(|region| {
            let [before, expected, found] =
                [&before[region], &expected[region], &lies[region]].map(Host::bytes);
            let difference = difference::compare(expected, found)?;
            let suspect = suspect::of(way, is_steady, Bytes { before, expected, found });
            Some(Found { region, held: touched[region], difference, suspect })
        });
        let found: Vec<Found> = found.collect();
        report.count(self.kernel, |tally: &mut Tally| tally.of(way).note(&found));
        if !found.is_empty() {
            report.different(self.kernel, self.launch, way, &found);
        }
        Ok(again)
    }
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Late => "late",
        }
    }
}
