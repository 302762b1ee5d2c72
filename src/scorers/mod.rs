//! Learned metrics of text against text, computed on the CPU from local weights: BERTScore and BLEURT.
//!
//! Each text, for BLEURT each pair, is a forward pass of its own, without padding, so no score depends on the pairs
//! beside it. Weights that are not there are an error that names their card, never a score of zero.

mod bertscore;
mod bleurt;
mod deberta;
mod sentencepiece;
mod tokens;

pub use bertscore::{BertScore, BertScoreModel, PrecisionRecallF};
pub use bleurt::Bleurt;
pub use sentencepiece::Pieces;
