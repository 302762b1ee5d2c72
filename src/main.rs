//! The binary: parse the command line, run the verb, exit as `exit.rs` decides.

use std::process::ExitCode;

mod ceiling; // what bytes from outside may take of memory and time

#[global_allocator]
static ALLOCATOR: ceiling::Counting = ceiling::Counting;

fn main() -> ExitCode {
    wardround::ceiling::keep_with(ceiling::KEEPER);
    wardround::cli::exit::report(|| wardround::cli::run(wardround::cli::parse()))
}
