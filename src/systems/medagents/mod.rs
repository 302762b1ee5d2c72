//! MedAgents (Tang et al., Findings of ACL 2024): experts of chosen fields analyse, a report brings them together, they vote on it.
//!
//! Two forms of it. [`harness`] is MedAgentBoard's, which MED-MAD's Table 1 compares with; [`original`] is the authors'.

pub mod harness;
pub mod original;
pub mod settings;
pub mod specialties;
pub mod texts;
