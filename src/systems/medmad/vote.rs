//! Vote weights from confidence, and the rationale of the voted answer.

use itertools::Itertools;

use super::record::Record;
use crate::systems::messages::truncate;
use crate::systems::vote::WHOLE;

/// The weight of a self-reported confidence in thousandths: f(p) of App. B.8.
fn recalibrated(confidence: f64) -> u32 {
    match confidence {
        p if p >= 0.95 => 900,
        p if p >= 0.85 => 700,
        p if p >= 0.70 => 500,
        p if p >= 0.50 => 300,
        _ => 100,
    }
}

/// The records' weights in thousandths; all alike without confidence (App. B.8).
pub fn weights(records: &[Record], confidence: bool) -> Vec<u32> {
    let weight = |record: &Record| if confidence { recalibrated(record.confidence) } else { WHOLE };
    records.iter().map(weight).collect()
}

/// The reasons of the agents that gave the answer, a line each: `final_support`, else the first two steps of `cot`, cut at
/// `truncate_chars` (App. B.4).
pub fn rationale(records: &[Record], answer: &str, truncate_chars: usize) -> String {
    let supporters = records.iter().filter(|record| record.answer == answer);
    let reasons = supporters.map(|record| reason(record, truncate_chars));
    reasons.filter(|reason| !reason.is_empty()).join("\n")
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
            (1.0, 900),
            (0.95, 900),
            (0.949, 700),
            (0.85, 700),
            (0.849, 500),
            (0.7, 500),
            (0.699, 300),
            (0.5, 300),
            (0.499, 100),
            (0.0, 100),
        ];
        for (confidence, weight) in steps {
            assert_eq!(recalibrated(confidence), weight, "{confidence}");
        }
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
        assert_eq!(rationale(&[record("", "", &[])], "", 200), "");
    }
}
