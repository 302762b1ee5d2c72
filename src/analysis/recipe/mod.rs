//! The results of a recipe's cells: figures, improvements, what its analyses compare; and all that as tables.

pub mod analysis;
mod columns;
pub mod improvement;
pub mod notes;
pub mod results;
pub mod tables;
