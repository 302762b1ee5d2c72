//! ReConcile's weights and its consensus; the vote itself is MED-MAD's, over these weights.

use crate::systems::vote::{Vote, vote};

/// What one agent answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// One letter, or empty.
    pub answer: String,
    pub confidence: f64,
    pub reasoning: String,
}

/// The weight of a confidence in tenths, f(p) of Chen et al. (ACL 2024), §4.
pub fn weight_tenths(confidence: f64) -> u32 {
    match confidence {
        p if p >= 1.0 => 10,
        p if p >= 0.9 => 8,
        p if p >= 0.8 => 5,
        p if p > 0.6 => 3,
        _ => 1,
    }
}

/// The weights and what they come to; empty answers have no vote, and of equal sums the first seen wins.
pub fn weighted_vote(opinions: &[Opinion]) -> (Vec<u32>, Vote) {
    let weights: Vec<u32> =
        opinions.iter().map(|opinion| weight_tenths(opinion.confidence)).collect();
    let answers: Vec<&str> = opinions.iter().map(|o| o.answer.as_str()).collect();
    let vote = vote(&answers, &weights);
    (weights, vote)
}

/// Whether those that gave an answer gave the same one, and somebody did.
pub fn consensus(opinions: &[Opinion]) -> bool {
    let mut given =
        opinions.iter().map(|opinion| &opinion.answer).filter(|answer| !answer.is_empty());
    given.next().is_some_and(|first| given.all(|answer| answer == first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opinions(given: &[(&str, f64)]) -> Vec<Opinion> {
        let opinion = |&(answer, confidence): &(&str, f64)| Opinion {
            answer: answer.into(),
            confidence,
            reasoning: String::new(),
        };
        given.iter().map(opinion).collect()
    }

    #[test]
    fn recalibration_has_the_papers_steps() {
        let steps = [
            (1.0, 10),
            (0.999, 8),
            (0.9, 8),
            (0.899, 5),
            (0.8, 5),
            (0.799, 3),
            (0.601, 3),
            (0.6, 1),
            (0.0, 1),
        ];
        for (confidence, tenths) in steps {
            assert_eq!(weight_tenths(confidence), tenths, "{confidence}");
        }
    }

    #[test]
    fn the_heaviest_answer_wins_and_of_equals_the_first_seen() {
        let won = |given: &[(&str, f64)]| {
            let (_, vote) = weighted_vote(&opinions(given));
            (vote.answer, vote.tie)
        };
        assert_eq!(won(&[("A", 1.0), ("B", 0.8), ("B", 0.7)]), ("A".into(), false));
        assert_eq!(won(&[("B", 0.8), ("A", 0.9), ("B", 0.7)]), ("B".into(), true));
        assert_eq!(won(&[("", 1.0), ("C", 0.1), ("", 1.0)]), ("C".into(), false));
        assert_eq!(won(&[("", 1.0), ("", 0.1)]), (String::new(), false));
        assert_eq!(won(&[("J", 0.9), ("A", 0.1), ("A", 0.1)]), ("J".into(), false));
    }

    #[test]
    fn empty_answers_do_not_stand_against_consensus() {
        let agree = |given: &[&str]| {
            let given: Vec<(&str, f64)> = given.iter().map(|answer| (*answer, 0.5)).collect();
            consensus(&opinions(&given))
        };
        assert!(agree(&["B", "B", "B"]));
        assert!(agree(&["", "B", ""]));
        assert!(!agree(&["B", "C", ""]));
        assert!(!agree(&["", "", ""]));
        assert!(!agree(&[]));
    }
}
