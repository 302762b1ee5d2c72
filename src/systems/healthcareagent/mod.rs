//! HealthcareAgent (Ren et al. 2025) as MedAgentBoard adapts it to multiple choice: one doctor plans, drafts, is reviewed, and revises.

pub mod messages;
pub mod parse;
pub mod protocol;
