//! Layers of the gated delta rule: their sizes, their weights, and the states that sequences have of them.

/// Heads of a layer. What is projected for a row lies as queries, keys and values, which the convolution mixes, then as gates of the output,
/// strengths of writing and steps of decay, a value head after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaShape {
    /// Heads of queries and of keys; each serves `value_heads / key_heads` of values.
    pub key_heads: usize,
    pub value_heads: usize,
    pub key_dim: usize,
    pub value_dim: usize,
    /// Rows that the convolution sees, its own included.
    pub taps: usize,
}

impl DeltaShape {
    /// Channels that the convolution mixes: queries, keys, values.
    pub fn channels(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.values()
    }

    /// Numbers of a row's values, and of what comes out.
    pub fn values(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Numbers that are projected for a row.
    pub fn projected(&self) -> usize {
        self.channels() + self.values() + 2 * self.value_heads
    }

    /// Numbers of a sequence's state in one layer: the convolution's last inputs `[taps - 1][channels]`, and a matrix a value head.
    pub fn state(&self) -> usize {
        (self.taps - 1) * self.channels() + self.value_heads * self.key_dim * self.value_dim
    }
}

/// States of so many layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateShape {
    pub layers: usize,
    pub of_layer: DeltaShape,
}

impl StateShape {
    /// Of one sequence, over all layers. States are f32 everywhere.
    pub fn bytes(&self) -> usize {
        4 * self.layers * self.of_layer.state()
    }
}

/// The weights of a layer beside its matrices.
#[derive(Debug)]
pub struct DeltaWeights<V> {
    /// `[taps][channels]`, the row's own last.
    pub convolution: V,
    /// `[value_heads]`: how fast a head forgets, and where its steps begin.
    pub rates: V,
    pub step_biases: V,
    /// `[value_dim]`, of what a head gives.
    pub norm: V,
    pub epsilon: f32,
}

/// The states of one layer: `S` is an exclusive reference to a pool of states.
#[derive(Clone, Copy, Debug)]
pub struct LayerStates<S> {
    pub states: S,
    pub layer: usize,
}

/// Where a sequence of a step has its state, and how many of its last rows are drafts, which leave no trace there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateRows {
    pub slot: u32,
    pub drafted: u32,
}
