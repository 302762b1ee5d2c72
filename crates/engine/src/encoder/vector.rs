//! From states to vectors: pooling, cutting to a width, length 1. In f64, because sums over hundreds of tokens are taken.

use super::card::EncoderOutput;

/// `states` is `[tokens][width]`, not empty; all tokens count, `[CLS]` and `[SEP]` too.
pub(super) fn pool(states: &[f32], width: usize, output: EncoderOutput) -> Vec<f64> {
    let pooled = match output {
        EncoderOutput::Mean => states,
        EncoderOutput::Cls | EncoderOutput::OneLogit => &states[..width],
    };
    let mut sums = vec![0.0; width];
    for state in pooled.chunks_exact(width) {
        sums.iter_mut().zip(state).for_each(|(sum, number)| *sum += f64::from(*number));
    }
    let count = (pooled.len() / width) as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    sums
}

/// The first `dims` numbers, at length 1 where asked for; a vector of zeros stays.
pub fn cut_to(vector: &[f64], dims: usize, normalised: bool) -> Vec<f32> {
    let vector = &vector[..dims];
    let length = match normalised {
        // sentence-transformers' own floor.
        true => vector.iter().map(|number| number * number).sum::<f64>().sqrt().max(1e-12),
        false => 1.0,
    };
    vector.iter().map(|number| (number / length) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_first_states() {
        let states = [1.0, -2.0, 3.0, 6.0];
        assert_eq!(pool(&states, 2, EncoderOutput::Mean), [2.0, 2.0]);
        assert_eq!(pool(&states, 2, EncoderOutput::Cls), [1.0, -2.0]);
    }

    #[test]
    fn a_cut_vector_has_length_one_and_zeros_keep_theirs() {
        assert_eq!(cut_to(&[3.0, 4.0, 12.0], 2, true), [0.6, 0.8]);
        assert_eq!(cut_to(&[3.0, 4.0, 12.0], 2, false), [3.0, 4.0]);
        assert_eq!(cut_to(&[0.0, 0.0], 2, true), [0.0, 0.0]);
    }
}
