//! An OpenAI-compatible server on the engines that runs use: equal requests get equal bytes.
//!
//! The path of a request:
//!
//! ```text
//! listener → server → guard → router → body → completion → request → response/answer → engine
//! and back: answer → events → server
//! ```
//!
//! tokio is used only here; an engine is a thread that reports the events of a request through a callback.

mod app;
pub mod audit;
mod body;
mod case;
mod completion;
mod embeddings;
mod encoders;
mod error;
mod guard;
pub mod keys;
#[cfg(test)]
mod linear;
mod listener;
mod metrics;
mod models;
pub mod options;
mod queue;
mod request;
mod response;
mod router;
mod server;

pub use self::encoders::ServedEncoder;
pub use self::models::{Served, ServedModel, ServedSystem};
pub use self::options::ServeOptions;
pub use self::server::serve;
