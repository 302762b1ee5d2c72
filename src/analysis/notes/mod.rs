//! Figures of runs on notes: what was detected, located and corrected, and how the agents got there (MedGuards, §4 and Appendix A).

mod agents;
mod correction;
mod detection;
mod evidence;
mod figures;
mod finding;
mod neural;
mod quality;
mod search;
mod stages;
mod verdict;

pub use agents::{Confidence, Consensus, LowPair, Settled};
pub use correction::{Correction, Corrections, Kpcs, Measured, Pairing, pairing, quality};
pub use detection::{ByType, Confusion, Detection, Localisation};
pub use evidence::{evidence, facts, may_be_followed};
pub use figures::{NoteFigures, tables};
pub use finding::{Finding, calls_of, capitalised, has_error, score_in_words};
pub use neural::{Pairs, bertscore_model, pairs, score_pairs};
pub use quality::{
    CorrectionScorer, GivenKeywords, KeywordFile, Measure, NeuralScores, Quality, ScoresByPair,
};
pub use search::{SearchFigures, Spread};
pub use stages::StageCost;
pub use verdict::{Verdict, verdict};
