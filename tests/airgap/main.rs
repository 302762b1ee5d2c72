//! What a hospital without a network relies on: bundles, the sandbox, the selftest.
#![allow(clippy::unwrap_used, clippy::panic)]

#[cfg(feature = "airgap")]
mod bundle;
#[path = "../common/mod.rs"]
mod common;
#[cfg(all(target_os = "linux", feature = "airgap"))]
mod sandbox;
mod selftest;
