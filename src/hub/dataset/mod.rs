//! Datasets: known by cards, fetched into a directory in the layout that recipes expect, verified by their sums.

mod card;
mod pattern;
mod record;
mod verify;

pub use card::{Check, Conversion, DatasetCard, DatasetFile, DatasetSource, Host};
pub use pattern::matches;
pub use record::{FetchedFile, Record};
pub use verify::{here, verify_datasets};
