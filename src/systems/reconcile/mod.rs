//! ReConcile (Chen et al., ACL 2024) as MedAgentBoard runs it: three models answer, discuss grouped answers, and vote by
//! recalibrated confidence.
//!
//! The original's convincing samples are left out, as there; and a discussion round always runs, even after a unanimous start.

pub mod messages;
pub mod protocol;
pub mod settings;
pub mod vote;
