//! The results of a recipe's cells: figures, improvements, what its analyses compare; and all that as tables.

pub mod analysis;
pub mod budget;
#[cfg(test)]
pub(super) mod fixtures;
pub mod improvement;
pub mod notes;
pub mod paired;
pub mod results;
pub mod tables;
