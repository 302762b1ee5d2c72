//! Ctrl-C: the first interrupt stops the run so that it can be resumed, the second exits at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit;
use crate::console;

/// A flag that is set by an interrupt or a termination signal.
pub fn watch() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // Without a handler the signal ends the process, and the run can be resumed too.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            exit::at_once();
        }
        console::note("interrupted: dropping the calls in flight");
    });
    stop
}
