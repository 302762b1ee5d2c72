//! What finished runs say: figures, comparisons, ratings and the contents of tables.

pub mod comparison;
pub mod conditions;
pub mod health;
pub mod mediqa_corr;
pub mod metrics;
pub mod notes;
pub mod outcomes;
pub mod rating;
pub mod recipe;
pub mod results;
pub mod risk;
pub mod say;
mod substance;
pub mod table;
pub mod tables;

pub use outcomes::{Outcomes, by_key};
