//! Learned metrics of text against text, computed on the CPU from local weights: BERTScore and BLEURT.
//!
//! Each text, for BLEURT each pair, is a forward pass of its own, without padding, so no score depends on the pairs
//! beside it. Weights that are not there are an error that names their card, never a score of zero.

mod bertscore;
mod bleurt;
mod deberta;
mod sentencepiece;
mod tokens;

pub use bertscore::{BertScore, BertScoreModel};
pub use bleurt::Bleurt;
pub use sentencepiece::sentence_pieces;

/// # Errors
/// A layer's numbers that do not divide into its attention's heads.
fn check_heads(width: usize, heads: usize) -> candle_core::Result<()> {
    match heads > 0 && width.is_multiple_of(heads) {
        true => Ok(()),
        false => candle_core::bail!("{width} numbers do not divide into {heads} heads"),
    }
}
