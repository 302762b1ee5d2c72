//! The answers of a round as a step of a question's case: each card, who changed, and the vote.

use serde::Serialize;

use super::card::{Card, Said};
use super::prompts::Prompts;
use super::step::{Group, Step, before, places};
use super::{Correctness, read};
use crate::record::{CallLine, ItemText, Parse, RoundLine, Stage};
use crate::systems::vote::WHOLE;

/// What an option got in a vote.
#[derive(Serialize)]
pub struct Vote<'a> {
    letter: String,
    text: &'a str,
    weight: String,
    /// Of all weights.
    percent: i64,
    supporters: Vec<&'a str>,
    winner: bool,
    gold: bool,
}

/// What a round's answers are compared with.
pub struct Answers<'a> {
    /// Letters and texts.
    pub options: Vec<(String, &'a str)>,
    pub gold: Option<&'a str>,
    /// The round before.
    pub last: Option<&'a RoundLine>,
}

impl<'a> Answers<'a> {
    pub fn step(&self, group: &Group<'a>, prompts: &mut Prompts<'a>) -> Step<'a> {
        let record = group.record;
        let agents = record.map_or(&[][..], |record| &record.agents);
        let calls = group.calls.iter().zip(places(&group.calls, agents));
        let cards = calls.map(|(&call, place)| {
            let counted = record.zip(place);
            Card::new(call, self.said(call, counted), prompts.number(call))
        });
        let cards: Vec<Card<'a>> = cards.collect();
        let aside = group.stage == Stage::Aside;
        let mut step = Step {
            title: format!("Round {}", group.round),
            about: match group.stage {
                Stage::Initial => "first answers, each agent alone".to_owned(),
                Stage::Round => "answers after seeing the others'".to_owned(),
                Stage::Final => "the decision".to_owned(),
                Stage::Aside => group.purpose.to_owned(),
            },
            folded: aside,
            uncounted: record.is_none() && !aside,
            cards,
            ..Step::default()
        };
        if let Some(record) = record {
            let labelled = record.labels.iter().zip('A'..='Z');
            step.doctors = labelled.map(|(agent, letter)| (letter, agent.as_str())).collect();
            step.brief = &record.brief;
            step.vote = Some(self.vote(record));
        }
        step
    }

    /// What an agent said: by the round's record where that counts the call, else by the call itself.
    fn said(&self, call: &'a CallLine, counted: Option<(&'a RoundLine, usize)>) -> Said<'a> {
        let record = call.record.as_value();
        // One that could not be read counts as 0 and was not stated.
        let notes = read::text(record, "notes");
        let is_zero = call.record.confidence() == Some(0.0);
        let is_unread = call.parse == Parse::Unread || notes.contains("answer_from_text");
        let is_stated = !(notes.contains("confidence_not_numeric") || is_zero && is_unread);
        let counts = |values: fn(&RoundLine) -> &Vec<f64>| {
            let (record, place) = counted?;
            values(record).get(place).map(f64::to_string)
        };
        let confidence = counts(|record| &record.confidences);
        let stated = || confidence.unwrap_or_else(|| read::text(record, "confidence").into_owned());
        let confidence = if is_stated { stated() } else { "not stated".to_owned() };
        let written = read::text(record, "answer");
        let answer = counted.and_then(|(record, place)| record.answers.get(place).cloned());
        let answer = answer.unwrap_or_else(|| written.clone().into_owned());
        let before = counted.and_then(|(record, place)| before(self.last, record, place));
        let known = self.options.iter().any(|(letter, _)| *letter == answer);
        Said {
            expected: call.stage != Stage::Aside,
            verdict: Correctness::of(&answer, self.gold),
            beyond: !answer.is_empty() && !self.options.is_empty() && !known,
            before: before.filter(|before| *before != answer),
            as_written: Some(written).filter(|written| *written != answer && !written.is_empty()),
            words: answer,
            confidence,
            weight: counts(|record| &record.weights),
        }
    }

    /// A vote for every option, then for every answer beyond them. Weights add up as whole thousandths, as the system adds them.
    fn vote(&self, record: &'a RoundLine) -> Vec<Vote<'a>> {
        let mut candidates = self.options.clone();
        for answer in record.answers.iter().filter(|answer| !answer.is_empty()) {
            if !candidates.iter().any(|(letter, _)| letter == answer) {
                candidates.push((answer.clone(), ""));
            }
        }
        let parts = |weight: &f64| (weight * f64::from(WHOLE)).round() as i64;
        let total: i64 = record.weights.iter().map(parts).sum();
        let vote = |(letter, text): (String, &'a str)| {
            let answers = record.answers.iter().zip(&record.weights).enumerate();
            let supporting = || answers.clone().filter(|(_, (answer, _))| **answer == letter);
            let sum: i64 = supporting().map(|(_, (_, weight))| parts(weight)).sum();
            Vote {
                text,
                weight: spell(sum),
                percent: if total > 0 { sum * 100 / total } else { 0 },
                supporters: supporting()
                    .map(|(place, _)| record.agents.get(place).map_or("?", String::as_str))
                    .collect(),
                winner: letter == record.aggregate,
                gold: self.gold == Some(letter.as_str()),
                letter,
            }
        };
        candidates.into_iter().map(vote).collect()
    }
}

/// With one decimal, and with as many more as it has.
fn spell(sum: i64) -> String {
    let sum = sum as f64 / f64::from(WHOLE);
    let tenths = format!("{sum:.1}");
    if tenths.parse() == Ok(sum) { tenths } else { sum.to_string() }
}

/// Letters and texts; none where the item's text is missing.
pub fn options(text: Option<&ItemText>) -> Vec<(String, &str)> {
    match text {
        Some(ItemText::Question(text)) => {
            let options = text.options.iter();
            options.map(|(letter, text)| (letter.to_string(), text.as_str())).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::fixtures::round;

    fn agents(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn weights_add_up_exactly_and_answers_beyond_the_options_come_last() {
        let answers = Answers {
            options: ["A", "B"].map(|letter| (letter.to_owned(), "x")).to_vec(),
            gold: Some("A"),
            last: None,
        };
        let mut record = round(0, ["B", "J", "B"]);
        record.weights = vec![0.1, 0.7, 0.2];
        let votes = answers.vote(&record);
        let summary: Vec<_> = votes
            .iter()
            .map(|vote| (vote.letter.as_str(), vote.weight.as_str(), vote.percent))
            .collect();
        assert_eq!(summary, [("A", "0.0", 0), ("B", "0.3", 30), ("J", "0.7", 70)]);
        assert_eq!(votes[1].supporters, ["sym", "guide"]);
        assert!(votes[0].gold && votes[1].winner);
        record.agents = agents(&["solo"; 3]);
        assert_eq!(answers.vote(&record)[1].supporters, ["solo"; 2]);
    }
}
