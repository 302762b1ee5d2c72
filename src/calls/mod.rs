//! The store of calls: completions under the sum of all that determines them, so that none is computed twice.
//!
//! A directory of files `*.calls`, each appended to by one process alone, so that any number of processes may read and write at once and
//! none waits for another. A line is `KEY SUM JSON`; it counts once its newline is there, and is believed only where its sum is right. What
//! a killed process or a full disk leaves behind the last newline was never there.

mod error;
mod line;
mod segment;
mod store;
pub mod upkeep;

pub use error::CallsError;
pub use line::{Elsewhere, Kept, Key};
pub use store::Store;
