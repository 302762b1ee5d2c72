//! What the cells of a recipe come to: figures, improvements, what its analyses compare.

pub mod analysis;
pub mod improvement;
pub mod results;

use super::metrics::MetricsError;
use crate::encoder::EncoderError;
use crate::experiment::recipe::RecipeError;

impl From<MetricsError> for RecipeError {
    fn from(error: MetricsError) -> RecipeError {
        RecipeError::Analysis(error.into())
    }
}

impl From<EncoderError> for RecipeError {
    fn from(error: EncoderError) -> RecipeError {
        RecipeError::Analysis(error.into())
    }
}
