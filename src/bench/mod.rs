//! The speed of a model, of an encoder, of a panel and of a server on this machine, beside the machine's limits.
//!
//! A model's tests are llama-bench's: prompt processing, token generation at a depth, both over a sweep of batches. They
//! run the decoder in steps as an engine makes them, without tokenising or sampling, and no prefix is found again. A panel's
//! test is the system itself, with everything. And what rounding does to a model's predictions.

pub mod embed;
pub mod environment;
#[cfg(all(feature = "serve", feature = "remote"))]
pub mod load;
pub mod model;
pub mod output;
pub mod panel;
pub mod quality;
#[cfg(all(feature = "serve", feature = "remote"))]
pub mod serve;
pub mod trial;
pub mod workload;
