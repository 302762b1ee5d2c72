//! The inverse frequencies of a rotary embedding, in f32 as the models were trained with.

use std::f64::consts::TAU;

use super::config::{RopeConfig, RopeScaling};

impl RopeConfig {
    /// `theta^(−2i / head_dim)` for `i < head_dim / 2`, stretched.
    pub fn inverse_frequencies(&self, head_dim: usize) -> Vec<f32> {
        (0..head_dim / 2)
            .map(|index| {
                let exponent = (2 * index) as f32 / head_dim as f32;
                if let RopeScaling::Proportional { part, .. } = self.scaling
                    && index >= (part * head_dim as f64 / 2.0) as usize
                {
                    return 0.0;
                }
                let wave = libm::pow(self.theta, f64::from(exponent)) as f32;
                match self.scaling {
                    RopeScaling::Yarn { factor, .. } => {
                        let kept = 1.0 - self.share_stretched(index, head_dim);
                        (1.0 - kept) / (factor as f32 * wave) + kept / wave
                    }
                    scaling => scaling.stretch(1.0 / wave),
                }
            })
            .collect()
    }

    /// What turned queries and keys are multiplied by.
    pub fn magnitude(&self) -> f32 {
        match self.scaling {
            RopeScaling::Yarn { magnitude, .. } => magnitude as f32,
            _ => 1.0,
        }
    }

    /// From 0, a pair that YaRN leaves, to 1, one that it stretches.
    fn share_stretched(&self, index: usize, head_dim: usize) -> f32 {
        let RopeScaling::Yarn { fast, slow, original_positions, truncates, .. } = self.scaling
        else {
            return 0.0;
        };
        // The pair that turns so many times.
        let turning = |times: f64| {
            let wave = original_positions / (times * TAU);
            head_dim as f64 * libm::log(wave) / (2.0 * libm::log(self.theta))
        };
        let (mut first, mut last) = (turning(fast), turning(slow));
        if truncates {
            (first, last) = (first.floor(), last.ceil());
        }
        (first, last) = (first.max(0.0), last.min((head_dim - 1) as f64));
        if first == last {
            last += 0.001;
        }
        ((index as f32 - first as f32) / (last - first) as f32).clamp(0.0, 1.0)
    }
}

impl RopeScaling {
    fn stretch(&self, frequency: f32) -> f32 {
        match *self {
            RopeScaling::None | RopeScaling::Yarn { .. } => frequency,
            RopeScaling::Linear { factor } | RopeScaling::Proportional { factor, .. } => {
                frequency / factor as f32
            }
            RopeScaling::Llama3 { factor, low_frequency, high_frequency, original_positions } => {
                let wavelength = std::f32::consts::TAU / frequency;
                let (original, factor) = (original_positions as f32, factor as f32);
                let (low, high) = (low_frequency as f32, high_frequency as f32);
                if wavelength < original / high {
                    frequency
                } else if wavelength > original / low {
                    frequency / factor
                } else {
                    let smooth = (original / wavelength - low) / (high - low);
                    (1.0 - smooth) * frequency / factor + smooth * frequency
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_keeps_short_waves_stretches_long_ones_and_blends_between() {
        let scaling = RopeScaling::Llama3 {
            factor: 32.0,
            low_frequency: 1.0,
            high_frequency: 4.0,
            original_positions: 8192.0,
        };
        let rope = RopeConfig { theta: 500_000.0, scaling };
        let plain = RopeConfig { theta: 500_000.0, scaling: RopeScaling::None };
        let (scaled, plain) = (rope.inverse_frequencies(128), plain.inverse_frequencies(128));
        assert_eq!(scaled[0], 1.0);
        assert_eq!(scaled[63], plain[63] / 32.0);
        let blended =
            scaled.iter().zip(&plain).filter(|(s, p)| **s < **p && **s > **p / 32.0).count();
        assert!(blended > 0);
    }
}
