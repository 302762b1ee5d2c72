//! The built binary, as a user or a script meets it: exit codes, messages, and what it leaves on the disk.

mod bad_checkpoints;
mod bad_data;
mod bad_notes;
mod baselines;
mod bench;
mod binary;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod comparing;
mod corpus;
mod corpus_faults;
#[cfg(feature = "hub")]
mod datasets;
mod determinism;
mod docs;
#[cfg(feature = "remote")]
mod endpoints;
#[cfg(feature = "remote")]
mod ends;
mod every_system;
mod exemplars;
mod forgeries;
mod fresh_start;
mod keywords;
mod limits;
#[cfg(feature = "remote")]
mod medreact_recipes;
#[cfg(feature = "remote")]
mod medreflex;
mod multi_agent;
mod notes;
mod own_system;
#[cfg(feature = "remote")]
mod protocols;
mod rating;
#[cfg(feature = "remote")]
mod real_models;
#[cfg(feature = "remote")]
mod real_server;
mod recipes;
mod recompute;
mod recompute_notes;
#[cfg(feature = "remote")]
mod remote;
mod report;
mod run_directory;
mod sampling;
mod shards;
mod signals;
#[cfg(feature = "remote")]
mod silence;
mod tampering;
mod texts;
mod without_effect;
