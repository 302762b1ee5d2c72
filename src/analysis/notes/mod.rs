//! What runs on notes came to: what was detected, located and corrected, and how the agents got there (MedGuards, §4 and Appendix A).

mod columns;
mod confidence;
mod consensus;
mod correction;
mod detection;
mod figures;
mod finding;
mod learn;
mod quality;
mod reading;
mod stages;
mod submission;

pub use columns::{COLUMNS, Column, columns};
pub use confidence::{Confidence, LowPair};
pub use consensus::{Consensus, Settled};
pub use correction::{Correction, Kpcs, Measured, quality};
pub use detection::{ByType, Confusion, Detection, Localisation};
pub use figures::NoteFigures;
pub use finding::{Finding, Word};
pub use learn::{Pairs, bertscore_model, learn, pairs};
pub use quality::{Gauge, Learned, LearnedScores, MEASURES, Quality, rouge1};
pub use reading::{NotesReading, Verdict, verdict};
pub use stages::{Prices, StageCost};
pub use submission::submission;
