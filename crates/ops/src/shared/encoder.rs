//! What encoders of BERT's shape ask of a backend beside what decoders do.

use super::Backend;

#[derive(Debug)]
pub struct TextTables<B: Backend> {
    /// `[vocabulary, hidden]`.
    pub words: B::Matrix,
    /// Of each position and each segment, `[positions · hidden]` and `[segments · hidden]`.
    pub positions: B::Vector,
    pub segments: B::Vector,
}

/// A norm that takes the mean away: `(x − mean) / √(variance + epsilon) · weight + bias`.
#[derive(Debug)]
pub struct LayerNorm<V> {
    pub weight: V,
    pub bias: V,
    pub epsilon: f32,
}

/// A backend that runs encoders of BERT's shape. As everywhere, each row's result is a function of its own input.
pub trait EncoderBackend: Backend {
    /// `out = word + segment + position`, row by row.
    fn embed_text(&self, tables: &TextTables<Self>, step: Self::Step<'_>, out: &mut Self::Buffer);
    /// `x = norm(x + branch + bias)`, or of `x` alone, and `normed` the same as products take it.
    fn layer_norm(
        &self,
        x: &mut Self::Buffer,
        branch: Option<Biased<'_, Self>>,
        norm: &LayerNorm<Self::Vector>,
        normed: &mut Self::Buffer,
    );
    /// `x += bias`, row by row.
    fn add_bias(&self, x: &mut Self::Buffer, bias: &Self::Vector);
    /// `out = gelu(x + bias)` with `gelu(x) = x/2 · (1 + erf(x/√2))`.
    fn gelu(&self, x: Biased<'_, Self>, out: &mut Self::Buffer);
}

/// Products of a layer whose bias is still to be added.
#[derive(Debug)]
pub struct Biased<'a, B: Backend> {
    pub products: &'a B::Buffer,
    pub bias: &'a B::Vector,
}
