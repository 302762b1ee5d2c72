//! From three answers to one: consensus, recalibrated weights, the vote, and its rationale.

use super::brief::truncate;
use super::record::Record;

/// What the panel answers. Weights are integer tenths, so that sums and ties are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// One letter; empty where no agent gave one.
    pub answer: String,
    /// Whether another answer had the same weight and the first agent in panel order decided.
    pub tie: bool,
    /// The mean weight of the agents that gave the answer, 0 to 1 (App. B.4, B.8).
    pub team_confidence: f64,
}

/// Whether all agents gave one and the same letter; empty answers are no agreement.
pub fn consensus(answers: &[&str]) -> bool {
    answers
        .first()
        .is_some_and(|first| !first.is_empty() && answers.iter().all(|answer| answer == first))
}

/// The weight of a self-reported confidence in tenths: f(p) of App. B.8.
pub fn weight_tenths(confidence: f64) -> u32 {
    match confidence {
        p if p >= 0.95 => 9,
        p if p >= 0.85 => 7,
        p if p >= 0.70 => 5,
        p if p >= 0.50 => 3,
        _ => 1,
    }
}

/// The records' weights in tenths; 10 each without confidence (App. B.8).
pub fn weights(records: &[Record], confidence: bool) -> Vec<u32> {
    let weight = |record: &Record| match confidence {
        true => weight_tenths(record.confidence),
        false => 10,
    };
    records.iter().map(weight).collect()
}

/// The answer of the greatest summed weight (App. B.4). Empty answers have no vote; of equal sums the
/// one wins that comes first in panel order.
pub fn vote(answers: &[&str], weights: &[u32]) -> Vote {
    let weight_of = |answer: &str| -> u32 {
        let pairs = answers.iter().zip(weights);
        pairs
            .filter(|(given, _)| **given == answer)
            .map(|(_, weight)| weight)
            .sum()
    };
    let mut winner = "";
    let mut tie = false;
    for &answer in answers.iter().filter(|answer| !answer.is_empty()) {
        if winner.is_empty() || weight_of(answer) > weight_of(winner) {
            (winner, tie) = (answer, false);
        } else if answer != winner && weight_of(answer) == weight_of(winner) {
            tie = true;
        }
    }
    let supporters = supporters(answers, winner);
    let tenths: u32 = supporters.iter().map(|agent| weights[*agent]).sum();
    Vote {
        answer: winner.to_string(),
        tie,
        team_confidence: match supporters.len() {
            0 => 0.0,
            count => f64::from(tenths) / (10 * count) as f64,
        },
    }
}

/// The supporters' reasons, a line each: `final_support`, else the first two steps of `cot`, cut at
/// `truncate_chars` (App. B.4).
pub fn rationale(records: &[Record], answer: &str, truncate_chars: usize) -> String {
    let answers: Vec<&str> = records
        .iter()
        .map(|record| record.answer.as_str())
        .collect();
    let reasons: Vec<String> = supporters(&answers, answer)
        .into_iter()
        .map(|agent| reason(&records[agent], truncate_chars))
        .filter(|reason| !reason.is_empty())
        .collect();
    reasons.join("\n")
}

fn reason(record: &Record, truncate_chars: usize) -> String {
    let support = record.structured_reasoning.final_support.trim();
    if !support.is_empty() {
        return support.to_string();
    }
    let steps = record.cot.len().min(2);
    truncate(&record.cot[..steps].join(" "), truncate_chars)
}

/// The agents that gave `answer`; all of them where none did.
fn supporters(answers: &[&str], answer: &str) -> Vec<usize> {
    let gave: Vec<usize> = (0..answers.len())
        .filter(|agent| answers[*agent] == answer)
        .collect();
    if gave.is_empty() {
        (0..answers.len()).collect()
    } else {
        gave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consensus_is_one_letter_from_all() {
        assert!(consensus(&["B", "B", "B"]));
        assert!(!consensus(&["B", "B", "C"]));
        assert!(!consensus(&["", "", ""]));
        assert!(!consensus(&["B", "B", ""]));
        assert!(!consensus(&[]));
    }

    #[test]
    fn recalibration_has_the_papers_steps() {
        let steps = [
            (1.0, 9),
            (0.95, 9),
            (0.949, 7),
            (0.85, 7),
            (0.849, 5),
            (0.7, 5),
            (0.699, 3),
            (0.5, 3),
            (0.499, 1),
            (0.0, 1),
        ];
        for (confidence, tenths) in steps {
            assert_eq!(weight_tenths(confidence), tenths, "{confidence}");
        }
    }

    #[test]
    fn the_heaviest_answer_wins() {
        let expected = |answer: &str, tie, team_confidence| Vote {
            answer: answer.into(),
            tie,
            team_confidence,
        };
        assert_eq!(
            vote(&["A", "B", "B"], &[9, 5, 3]),
            expected("A", false, 0.9)
        );
        assert_eq!(
            vote(&["A", "B", "B"], &[7, 5, 3]),
            expected("B", false, 0.4)
        );
        // 0.1 + 0.2 is not 0.3 in floating point; tenths are exact.
        assert_eq!(vote(&["C", "B", "B"], &[3, 1, 2]), expected("C", true, 0.3));
        assert_eq!(vote(&["C", "B", "A"], &[1, 5, 5]), expected("B", true, 0.5));
        assert_eq!(vote(&["C", "B", "A"], &[10; 3]), expected("C", true, 1.0));
        assert_eq!(
            vote(&["A", "B", "C"], &[5, 5, 7]),
            expected("C", false, 0.7)
        );
        assert_eq!(
            vote(&["J", "J", "A"], &[1, 1, 1]),
            expected("J", false, 0.1)
        );
    }

    #[test]
    fn an_empty_answer_has_no_vote() {
        let won = vote(&["", "", "D"], &[9, 9, 1]);
        assert_eq!((won.answer.as_str(), won.tie), ("D", false));
        assert_eq!(won.team_confidence, 0.1);
        let none = vote(&["", "", ""], &[9, 7, 1]);
        assert_eq!((none.answer.as_str(), none.tie), ("", false));
        assert_eq!(none.team_confidence, 17.0 / 30.0);
    }

    #[test]
    fn without_confidence_every_vote_counts_alike() {
        let records = [0.99, 0.1].map(|confidence| Record {
            confidence,
            ..Record::default()
        });
        assert_eq!(weights(&records, false), [10, 10]);
        assert_eq!(weights(&records, true), [9, 1]);
    }

    #[test]
    fn the_rationale_is_the_supporters() {
        let record = |answer: &str, support: &str, cot: &[&str]| {
            let mut record = Record {
                answer: answer.into(),
                cot: cot.iter().map(|step| step.to_string()).collect(),
                ..Record::default()
            };
            record.structured_reasoning.final_support = support.into();
            record
        };
        let records = [
            record("B", "fits the fever", &["one"]),
            record("C", "safer", &[]),
            record("B", " ", &["first", "second", "third"]),
        ];
        assert_eq!(
            rationale(&records, "B", 200),
            "fits the fever\nfirst second"
        );
        assert_eq!(rationale(&records, "B", 5), "fits the fever\nfirst…");
        assert_eq!(rationale(&records, "C", 200), "safer");
        assert_eq!(
            rationale(&records, "E", 200),
            "fits the fever\nsafer\nfirst second"
        );
        assert_eq!(rationale(&[record("", "", &[])], "", 200), "");
    }
}
