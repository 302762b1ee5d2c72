//! The store of calls: completions under the sum of all that determines them, so that none is computed twice.
//!
//! A file a completion, `DIR/ab/KEY.call`, which comes by renaming a whole one: any number of processes on any number of machines may read
//! and write at once, and none takes a lock, which a file system may lack. A file is believed only where its sum is right. So `cp` takes
//! calls in, and `find` drops old ones.

mod kept;
mod store;

pub use kept::{Elsewhere, KeptCall, store_key};
pub use store::Store;
