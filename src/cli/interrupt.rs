//! Ctrl-C: the first stops the run where it can be resumed, the second stops at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit;
use crate::console;

/// A flag that an interrupt or a termination signal sets.
pub fn watch() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // Without a handler the signal ends the process, which a resumed run mends as well.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            exit::at_once();
        }
        console::note("interrupted: dropping the calls in flight");
    });
    stop
}
