//! A round of answers that count alike: the letter that most gave, and how many stand behind one.

use super::medmad::vote;
use crate::record::{RoundLine, Stage};

/// The letter that most gave, of equally many the first; empty answers have no vote.
pub fn majority(answers: &[String]) -> String {
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    vote::vote(&answers, &vec![1; answers.len()]).answer
}

/// The share of the answers that are this letter; 0 where there is none.
pub fn support(answers: &[String], answer: &str) -> f64 {
    let gave = answers.iter().filter(|given| *given == answer).count();
    match answer.is_empty() || answers.is_empty() {
        true => 0.0,
        false => gave as f64 / answers.len() as f64,
    }
}

/// A round in which nobody was asked for a confidence.
pub fn round_record(
    round: u32,
    stage: Stage,
    agents: Vec<String>,
    answers: Vec<String>,
    brief: String,
) -> RoundLine {
    RoundLine {
        round,
        stage,
        labels: Vec::new(),
        confidences: Vec::new(),
        weights: vec![1.0; agents.len()],
        agents,
        aggregate: majority(&answers),
        answers,
        brief,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(letters: &[&str]) -> Vec<String> {
        letters.iter().map(|letter| letter.to_string()).collect()
    }

    #[test]
    fn of_equally_many_the_first_wins() {
        assert_eq!(majority(&answers(&["C", "B", "A"])), "C");
        assert_eq!(majority(&answers(&["C", "B", "B"])), "B");
        assert_eq!(majority(&answers(&["", "", "D"])), "D");
        assert_eq!(majority(&answers(&["", ""])), "");
        assert_eq!(majority(&[]), "");
    }

    #[test]
    fn support_is_the_share_that_gave_it() {
        let given = answers(&["B", "B", "C", ""]);
        assert_eq!(support(&given, "B"), 0.5);
        assert_eq!(support(&given, "E"), 0.0);
        assert_eq!(support(&given, ""), 0.0);
        assert_eq!(support(&[], "A"), 0.0);
    }
}
