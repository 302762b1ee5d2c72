//! Without a GPU: the emulator compared with itself. Its memory is the host's, and what is written late is written by the
//! kernel that does so on a GPU.

use super::super::arguments::Arguments;
use super::super::driver::Function;
use super::super::launch::Launch;
use super::emulator::{self, Sums};
use super::host::Host;
use super::{Fault, LATE_NANOSECONDS, Late, POISON, PRODUCER, Subject};

#[derive(Debug)]
pub struct Itself;

impl Subject for Itself {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: a region that lives while its launch is compared has so many bytes there.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, to.len()) };
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        // SAFETY: as above.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn has_late(&self) -> bool {
        true
    }

    fn plain(&self, launch: &Launch, arguments: &Arguments) -> Result<(), Fault> {
        emulator::run(launch.function.name(), launch, &mut arguments.clone(), Sums::Hopper);
        Ok(())
    }

    fn late(
        &self,
        launch: &Launch,
        arguments: &Arguments,
        inputs: &[Late<'_>],
    ) -> Result<(), Fault> {
        let mut copies: Vec<Host> = inputs.iter().map(|late| Host::of(late.bytes)).collect();
        let mut pieces = Vec::new();
        for (late, copy) in inputs.iter().zip(&mut copies) {
            self.write(late.address, &vec![POISON; late.bytes.len()])?;
            pieces.extend([late.address, copy.address(), late.bytes.len() as u64]);
        }
        let producer = Launch::new(Function::of(PRODUCER), [4, 1, 1], 128);
        let mut list = Arguments::default()
            .address(pieces.as_ptr() as u64)
            .int(inputs.len())
            .int(LATE_NANOSECONDS);
        emulator::run(PRODUCER, &producer, &mut list, Sums::Hopper);
        self.plain(launch, arguments)
    }
}
