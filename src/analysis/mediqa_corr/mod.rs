//! The shared task MEDIQA-CORR 2024: its submission file and its official scorer.

pub mod score;
pub mod submission;
