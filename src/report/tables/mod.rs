//! What the tables of runs and of recipes share: cost, calibration, and all of notes.

pub mod calibration;
pub mod correction;
pub mod costs;
pub mod notes;
