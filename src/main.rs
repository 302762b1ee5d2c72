//! The binary: parse the command line, run the verb, exit as `exit.rs` decides.

use std::process::ExitCode;

fn main() -> ExitCode {
    wardround::cli::exit::report(wardround::cli::run(wardround::cli::parse()))
}
