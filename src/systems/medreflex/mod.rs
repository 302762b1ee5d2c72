//! MedReAct'N'MedReFlex: steps of thought and search until an answer, five reviews of it, a reflexion where they reject it
//! (Corbeil, MEDIQA-CORR 2024), and MedReAct, its inner loop alone.

pub mod answer;
mod conclusion;
mod protocol;
pub mod review;
pub mod settings;
mod shapes;
pub mod step;
#[cfg(test)]
mod tests;
mod texts;
