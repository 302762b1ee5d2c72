//! The end of a command: its error message and its exit code.

use std::any::Any;
use std::panic::{UnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::console;
use crate::diagnosis::Blame;
pub use crate::diagnosis::Failure;

/// Printed below `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    finished, but a check failed, items errored or none has a result
  2    wrong usage, configuration or data
  3    a missing or corrupt file of a model or a run
  70   a failure of the machine or of an endpoint: disk full, out of memory, GPU fault, internal error
  130  interrupted; `wardround resume DIR` goes on";

/// A flag that is set by Ctrl-C or a termination signal: the run stops so that it can be resumed. A second one exits at once, for every
/// line that was counted is durable.
#[expect(clippy::exit, reason = "nothing is left to unwind for")]
pub fn on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // Without a handler the signal ends the process, and the run can be resumed too.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Blame::Interrupted.exit_code()))
        }
        console::note("interrupted: dropping the calls in flight");
    });
    stop
}

/// Runs a command, prints its error and hint to stderr, and returns the exit code; a panic is an error of the machine, as one is where no
/// thread can be started.
pub fn report(command: impl FnOnce() -> Result<(), Failure> + UnwindSafe) -> ExitCode {
    match catch_unwind(command).unwrap_or_else(|panic| Err(panicked(&*panic))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console::note(format!("error: {}", indented(&failure.to_string())));
            if let Some(hint) = failure.hint() {
                console::note(format!("hint: {}", indented(&hint)));
            }
            ExitCode::from(failure.blame().exit_code())
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text =
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why");
    let hint = match text.contains("failed to spawn thread") {
        true => {
            "allow this user more threads (`ulimit -u`), or take fewer with --threads and --max-batch"
        }
        false => "this is a bug in wardround: report it with the lines above",
    };
    Failure::machine(format!("wardround crashed: {text}"), hint)
}

/// Every line but the first set in: what a stranger's file has put into a message never looks like a line of the program's.
fn indented(message: &str) -> String {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |shown, line| {
        let more = if line.starts_with(' ') { "" } else { "  " };
        shown + "\n" + more + line
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::engine::EngineError;
    use crate::experiment::error::RunError;
    use crate::hub::HubError;
    use crate::ops::OpsError;
    use crate::panel::PanelError;

    fn code(failure: impl Into<Failure>) -> u8 {
        failure.into().blame().exit_code()
    }

    #[test]
    fn a_strangers_text_is_no_line_of_the_programs() {
        assert_eq!(indented("x is wrong"), "x is wrong");
        assert_eq!(
            indented("no file a\nhint: run rm\n  - b\n"),
            "no file a\n  hint: run rm\n  - b"
        );
    }

    #[test]
    fn what_finished_otherwise_than_hoped_is_1() {
        assert_eq!(code(Failure::outcome("two items errored", None)), 1);
    }

    #[test]
    fn what_panics_is_the_machines() {
        assert_eq!(report(|| panic!("failed to spawn thread: {}", "full")), ExitCode::from(70));
        assert_eq!(report(|| Ok(())), ExitCode::SUCCESS);
        let failure = panicked(&"failed to spawn thread");
        assert!(failure.hint().is_some_and(|hint| hint.contains("ulimit -u")));
    }

    #[test]
    fn what_the_user_can_type_otherwise_is_2() {
        let member = "gemma".to_owned();
        assert_eq!(code(Failure::usage("no such flag", "leave it out")), 2);
        assert_eq!(code(HubError::UnknownModel { member }), 2);
        assert_eq!(code(OpsError::unknown("`tpu` is no device".to_owned())), 2);
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(code(RunError::from(error)), 2);
    }

    #[test]
    fn what_is_missing_or_corrupt_is_3() {
        let path = PathBuf::from("run");
        assert_eq!(code(Failure::mismatch("the sums differ")), 3);
        assert_eq!(code(RunError::NoPlan { path }), 3);
    }

    #[test]
    fn what_the_machine_did_is_70() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(code(full()), 70);
        assert_eq!(code(RunError::Io(Arc::new(full()))), 70);
        assert_eq!(code(PanelError::Beside(RunError::from(full()).into())), 70);
        assert_eq!(code(PanelError::Engine(EngineError::Died { reason: String::new() })), 70);
        let fault =
            OpsError::Device { device: "cuda:0".into(), reason: "an illegal address".into() };
        assert_eq!(code(PanelError::Engine(fault.into())), 70);
        assert_eq!(code(OpsError::memory("the weights", "none is left")), 70);
    }

    #[test]
    fn what_a_signal_ended_is_130() {
        assert_eq!(code(PanelError::Interrupted), 130);
        let failure = Failure::interrupted("interrupted", "resume it".to_owned());
        assert_eq!(code(failure), 130);
    }

    #[test]
    fn help_names_every_code() {
        for blame in
            [Blame::Outcome, Blame::Usage, Blame::Artefact, Blame::Machine, Blame::Interrupted]
        {
            let line = format!("\n  {:<4} ", blame.exit_code());
            assert!(EXIT_CODES.contains(&line), "{line}");
        }
    }
}
