//! The speed of a model on this machine, beside the machine's bandwidth.
//!
//! A model's tests are llama-bench's: prompt processing, token generation at a depth, both over a sweep of batches. They
//! run the decoder in steps as an engine makes them, without tokenising or sampling, and no prefix is found again.

pub mod environment;
pub mod model;
pub mod trial;
pub mod workload;
