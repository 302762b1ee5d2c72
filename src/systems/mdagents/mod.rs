//! MDAgents (Kim et al., NeurIPS 2024) as MedAgentBoard runs it: by a question's complexity, one doctor, several experts, or teams.
//!
//! Nobody discusses with anybody there: experts are asked once and teams do not read each other, so that initial answers are all the
//! trajectories there are (MED-MAD, B.7).

pub mod letter;
pub mod messages;
pub mod protocol;
pub mod recruits;
pub mod settings;
mod teams;
