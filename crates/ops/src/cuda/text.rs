//! Encoders on the GPU, and products in f32, which theirs are where their weights are kept so.

use super::arguments::Arguments;
use super::kernels::Product;
use super::launch::Launch;
use super::stage::Step;
use super::{Buffer, Cuda, Matrix, Vector};
use crate::{Backend, Biased, EncoderBackend, LayerNorm, OpsError, Precision, TextTables};

impl Cuda {
    /// The same GPU for an encoder whose weights are kept so, through a stream of its own: f32 is multiplied as f32, all else
    /// as bf16.
    pub fn for_encoder(&self, precision: Precision) -> Result<Cuda, OpsError> {
        Ok(Cuda { in_f32: precision.is_f32(), ..self.for_engine()? })
    }

    /// By weights that are kept as f32.
    pub(super) fn multiply_in_f32(&self, x: &Buffer, weights: &Matrix, out: &Buffer) {
        let size = Product { rows: x.rows, outputs: weights.outputs, inputs: weights.inputs };
        debug_assert!(x.width == weights.inputs && x.is_wide && out.is_wide);
        let arguments = Arguments::default()
            .region(&weights.values)
            .rows(x)
            .int(x.rows)
            .int(weights.outputs)
            .int(weights.inputs)
            .int(32 * weights.k_tiles())
            .rows(out);
        self.stream.launch(self.kernels.matmul_f32(size), arguments);
    }
}

impl EncoderBackend for Cuda {
    fn embed_text(&self, tables: &TextTables<Cuda>, step: Step, out: &mut Buffer) {
        self.embed(&tables.words, step, 1.0, out);
        let arguments = Arguments::default()
            .address(step.at.positions)
            .address(step.at.segments)
            .region(&tables.positions.0)
            .region(&tables.segments.0)
            .int(out.width)
            .region(&out.region);
        self.stream.launch(Launch::by_row(self.kernels.add_places, step.rows), arguments);
    }

    fn layer_norm(
        &self,
        x: &mut Buffer,
        branch: Option<Biased<'_, Cuda>>,
        norm: &LayerNorm<Vector>,
        normed: &mut Buffer,
    ) {
        normed.set_rows(x.rows);
        let arguments = Arguments::default()
            .region(&x.region)
            .maybe(branch.as_ref().map(|branch| &branch.products.region))
            .maybe(branch.as_ref().map(|branch| &branch.bias.0))
            .region(&norm.weight.0)
            .region(&norm.bias.0)
            .float(norm.epsilon)
            .int(x.width)
            .rows(normed);
        self.stream.launch(Launch::by_row(self.kernels.layer_norm.to(normed), x.rows), arguments);
    }

    fn add_bias(&self, x: &mut Buffer, bias: &Vector) {
        let arguments = Arguments::default().region(&x.region).region(&bias.0).int(x.width);
        self.stream.launch(Launch::by_row(self.kernels.add_bias, x.rows), arguments);
    }

    fn gelu(&self, Biased { products, bias }: Biased<'_, Cuda>, out: &mut Buffer) {
        out.set_rows(products.rows);
        let arguments = Arguments::default()
            .region(&products.region)
            .region(&bias.0)
            .int(products.width)
            .rows(out);
        self.stream.launch(Launch::by_row(self.kernels.gelu.to(out), products.rows), arguments);
    }
}
