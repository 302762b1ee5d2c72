//! A round's vote: what each option's supporters weigh together.

use serde::Serialize;

use super::round::Setting;
use crate::record::RoundLine;

/// What an option got.
#[derive(Serialize)]
pub struct Vote<'a> {
    letter: &'a str,
    text: &'a str,
    weight: String,
    /// Of all weights.
    percent: i64,
    supporters: Vec<&'a str>,
    winner: bool,
    gold: bool,
}

impl<'a> Vote<'a> {
    /// A vote for every option, then for every answer beyond them. Weights add up as whole tenths, as the system adds them.
    pub fn count(record: &'a RoundLine, setting: &Setting<'a, '_>) -> Vec<Vote<'a>> {
        let options = setting.options.iter();
        let mut candidates: Vec<(&str, &str)> = options.map(|o| (o.letter, o.text)).collect();
        for answer in record.answers.iter().filter(|answer| !answer.is_empty()) {
            if !candidates.iter().any(|(letter, _)| letter == answer) {
                candidates.push((answer, ""));
            }
        }
        let tenths = |weight: &f64| (weight * 10.0).round() as i64;
        let total: i64 = record.weights.iter().map(tenths).sum();
        let vote = |(letter, text): (&'a str, &'a str)| {
            let answers = record.answers.iter().zip(&record.weights).enumerate();
            let supporting = || answers.clone().filter(|(_, (answer, _))| *answer == letter);
            let sum: i64 = supporting().map(|(_, (_, weight))| tenths(weight)).sum();
            Vote {
                letter,
                text,
                weight: format!("{:.1}", sum as f64 / 10.0),
                percent: if total > 0 { sum * 100 / total } else { 0 },
                supporters: supporting()
                    .map(|(place, _)| record.agents.get(place).map_or("?", String::as_str))
                    .collect(),
                winner: letter == record.aggregate,
                gold: setting.gold == Some(letter),
            }
        };
        candidates.into_iter().map(vote).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures::round;
    use crate::report::question::Choice;

    #[test]
    fn weights_add_up_as_tenths_and_answers_beyond_the_options_come_last() {
        let options = ["A", "B"].map(|letter| Choice { letter, text: "x" });
        let setting = Setting {
            options: &options,
            gold: Some("A"),
            before: None,
        };
        let mut record = round(0, ["B", "J", "B"]);
        record.weights = vec![0.1, 0.7, 0.2];
        let votes = Vote::count(&record, &setting);
        let summary: Vec<_> = votes
            .iter()
            .map(|v| (v.letter, v.weight.as_str(), v.percent))
            .collect();
        assert_eq!(
            summary,
            [("A", "0.0", 0), ("B", "0.3", 30), ("J", "0.7", 70)]
        );
        assert_eq!(votes[1].supporters, ["sym", "guide"]);
        assert!(votes[0].gold && votes[1].winner);
        record.agents = vec!["solo".into(); 3];
        assert_eq!(Vote::count(&record, &setting)[1].supporters, ["solo"; 2]);
    }
}
