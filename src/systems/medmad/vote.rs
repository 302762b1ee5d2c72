//! Vote weights from recalibrated confidence, and the rationale of the voted answer.

use super::record::Record;
use crate::systems::messages::truncate;
use crate::systems::vote::supporters;

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
    let weight = |record: &Record| if confidence { weight_tenths(record.confidence) } else { 10 };
    records.iter().map(weight).collect()
}

/// The reasons of the agents that gave the answer, a line each: `final_support`, else the first two steps of `cot`, cut at
/// `truncate_chars` (App. B.4).
pub fn rationale(records: &[Record], answer: &str, truncate_chars: usize) -> String {
    let answers: Vec<&str> = records.iter().map(|record| record.answer.as_str()).collect();
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
        return support.to_owned();
    }
    let steps = record.cot.len().min(2);
    truncate(&record.cot[..steps].join(" "), truncate_chars)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn without_confidence_every_vote_counts_alike() {
        let records = [0.99, 0.1].map(|confidence| Record { confidence, ..Record::default() });
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
        assert_eq!(rationale(&records, "B", 200), "fits the fever\nfirst second");
        assert_eq!(rationale(&records, "B", 5), "fits the fever\nfirst…");
        assert_eq!(rationale(&records, "C", 200), "safer");
        assert_eq!(rationale(&records, "E", 200), "fits the fever\nsafer\nfirst second");
        assert_eq!(rationale(&[record("", "", &[])], "", 200), "");
    }
}
