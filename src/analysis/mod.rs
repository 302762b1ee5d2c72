//! What finished runs say: figures, comparisons, ratings and the contents of tables.

pub mod comparison;
pub mod conditions;
pub mod facts;
pub mod figures;
pub mod health;
pub mod metrics;
pub mod notes;
pub mod outcomes;
pub mod rating;
pub mod risk;
pub mod say;
pub mod table;

pub use outcomes::{Outcomes, by_key};
