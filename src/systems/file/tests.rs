//! The built-in files, others, and what is said of those that are wrong.

mod alone;
mod knowlab;
mod own;
mod prompted;
