//! The binary: parse the command line, run the verb, exit as `exit.rs` decides.

use std::process::ExitCode;

fn main() -> ExitCode {
    wardround::sandbox::inherited::close(
        std::env::args_os().chain(std::env::vars_os().map(|(_, value)| value)),
    );
    wardround::cli::exit::report(|| wardround::cli::run(wardround::cli::parse()))
}
