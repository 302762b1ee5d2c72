//! What a load's requests come to: rates and percentiles of times.

use serde::Serialize;

use super::{Finished, Outcome};
use crate::engine::Latencies;

/// Figures of one load. Times are over the requests that were answered.
#[derive(Clone, Debug, Serialize)]
pub struct LoadFigures {
    pub requests: usize,
    pub answered: usize,
    /// Status 429.
    pub refused: usize,
    pub failed: usize,
    /// The first of the failures.
    pub failure: Option<String>,
    pub wall_seconds: f64,
    pub requests_per_second: f64,
    /// Tokens of completions.
    pub tokens_per_second: f64,
    /// The mean over the requests that were answered.
    pub prompt_tokens: f64,
    pub first_text_ms: Percentiles,
    pub between_pieces_ms: Percentiles,
    pub request_ms: Percentiles,
}

/// `None` where nothing was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
}

impl Percentiles {
    pub fn of(times: &Latencies) -> Percentiles {
        Percentiles { p50: times.percentile_ms(0.5), p99: times.percentile_ms(0.99) }
    }
}

impl LoadFigures {
    pub fn new(finished: &Finished) -> LoadFigures {
        let (mut first, mut gaps, mut whole) =
            (Latencies::default(), Latencies::default(), Latencies::default());
        let (mut answered, mut refused, mut failure) = (0, 0, None);
        let (mut prompt_tokens, mut tokens) = (0, 0);
        for (_, seen) in &finished.seen {
            match &seen.outcome {
                Outcome::Answered => {
                    answered += 1;
                    prompt_tokens += seen.prompt_tokens;
                    tokens += seen.completion_tokens;
                    seen.first.iter().for_each(|&time| first.record(time));
                    seen.gaps.iter().for_each(|&time| gaps.record(time));
                    whole.record(seen.elapsed);
                }
                Outcome::Refused => refused += 1,
                Outcome::Failed(reason) => failure = failure.or_else(|| Some(reason.clone())),
            }
        }
        let seconds = finished.wall.as_secs_f64();
        let requests = finished.seen.len();
        LoadFigures {
            requests,
            answered,
            refused,
            failed: requests - answered - refused,
            failure,
            wall_seconds: seconds,
            requests_per_second: answered as f64 / seconds,
            tokens_per_second: tokens as f64 / seconds,
            prompt_tokens: prompt_tokens as f64 / answered.max(1) as f64,
            first_text_ms: Percentiles::of(&first),
            between_pieces_ms: Percentiles::of(&gaps),
            request_ms: Percentiles::of(&whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Seen;
    use super::*;

    #[test]
    fn requests_are_counted_by_their_ends_and_only_answers_are_timed() {
        let seen = |outcome, milliseconds| Seen {
            outcome,
            first: Some(Duration::from_millis(milliseconds)),
            gaps: vec![Duration::from_millis(1); 2],
            elapsed: Duration::from_millis(2 * milliseconds),
            prompt_tokens: 10,
            completion_tokens: 3,
            text: String::new(),
        };
        let finished = Finished {
            seen: vec![
                (0, seen(Outcome::Answered, 10)),
                (1, seen(Outcome::Answered, 10)),
                (2, seen(Outcome::Refused, 900)),
                (3, seen(Outcome::Failed("lost".to_owned()), 900)),
            ],
            wall: Duration::from_secs(2),
        };
        let figures = LoadFigures::new(&finished);
        assert_eq!((figures.requests, figures.answered), (4, 2));
        assert_eq!((figures.refused, figures.failed), (1, 1));
        assert_eq!(figures.failure.as_deref(), Some("lost"));
        assert_eq!((figures.requests_per_second, figures.tokens_per_second), (1.0, 3.0));
        assert_eq!(figures.prompt_tokens, 10.0);
        // Of buckets, to 1/64.
        let near =
            |figure: Option<f64>, expected: f64| (figure.unwrap() / expected - 1.0).abs() < 0.02;
        assert!(near(figures.first_text_ms.p99, 10.0) && near(figures.request_ms.p50, 20.0));
        assert!(near(figures.between_pieces_ms.p50, 1.0));
    }
}
