//! `wardround serve` as clients meet it: tiny synthetic models, one process a test.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod audit;
mod case_client;
mod cases;
mod client;
mod completions;
mod limits;
mod openapi;
mod page;
mod systems;
