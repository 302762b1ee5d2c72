//! Figures over finished items; nothing here knows a model or a file.

pub mod accuracy;
