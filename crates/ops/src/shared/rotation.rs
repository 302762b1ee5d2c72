//! What a position does to queries and keys, as tables that every backend reads.

/// How heads are turned by position.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotation {
    /// `[head_dim / 2]`, f32 as the models were trained with; a pair of frequency zero stays as it is.
    pub inverse_frequencies: Vec<f32>,
    /// What turned queries and keys are multiplied by.
    pub magnitude: f32,
    pub growth: Option<QueryGrowth>,
}

/// What turned queries are multiplied by besides: `1 + beta · ln(1 + ⌊position / every⌋)`, so that attention over long contexts stays sharp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryGrowth {
    pub beta: f32,
    /// Positions.
    pub every: f32,
}

/// Cosines and sines `[positions][head_dim / 2]`, and what queries are multiplied by, `[positions]`: nothing where they do not grow.
#[derive(Debug)]
pub struct Angles {
    pub cosines: Vec<f32>,
    pub sines: Vec<f32>,
    pub growth: Vec<f32>,
}

impl Rotation {
    /// By frequencies alone.
    pub fn by(inverse_frequencies: Vec<f32>) -> Rotation {
        Rotation { inverse_frequencies, magnitude: 1.0, growth: None }
    }

    pub fn angles(&self, positions: usize) -> Angles {
        let angles = (0..positions).flat_map(|position| {
            let frequencies = self.inverse_frequencies.iter();
            frequencies.map(move |frequency| f64::from(position as f32 * frequency))
        });
        let turned = |angle| {
            (libm::cos(angle) as f32 * self.magnitude, libm::sin(angle) as f32 * self.magnitude)
        };
        let (cosines, sines) = angles.map(turned).unzip();
        let grown = |QueryGrowth { beta, every }: QueryGrowth| {
            let steps = move |position: usize| f64::from((position as f32 / every).floor());
            (0..positions).map(move |position| 1.0 + beta * libm::log1p(steps(position)) as f32)
        };
        Angles { cosines, sines, growth: self.growth.into_iter().flat_map(grown).collect() }
    }
}
