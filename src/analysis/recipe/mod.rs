//! What the cells of a recipe come to: figures, improvements, what its analyses compare.

pub mod analysis;
pub mod improvement;
pub mod results;
