//! `wardround serve` as clients meet it: tiny synthetic models, one process a test.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../hostile/damage.rs"]
#[allow(dead_code)]
mod damage;

mod audit;
mod cases;
mod client;
mod completions;
mod container;
mod durable;
mod encoders;
mod endpoints;
mod ends;
mod hostile;
mod identity;
mod limits;
mod metrics;
mod notices;
mod systems;
mod turns;

/// What stopped work holds, of which `damage` asks: nothing is held to ceilings here.
#[allow(dead_code)]
fn lost() -> usize {
    0
}
