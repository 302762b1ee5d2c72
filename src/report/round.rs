//! One round of a case: each member's card, the brief they were shown, the vote, and who changed.

use std::borrow::Cow;

use serde::Serialize;

use super::card::{Card, Said};
use super::case::Verdict;
use super::panel::Panel;
use super::prompts::Prompts;
use super::read;
use crate::run::records::{CallRecord, RoundRecord};

#[derive(Serialize)]
pub struct Round<'a> {
    number: u32,
    doctors: Vec<Doctor<'a>>,
    brief: &'a str,
    cards: Vec<Card<'a>>,
    votes: Vec<Vote<'a>>,
    changes: Vec<Change<'a>>,
    aggregate: &'a str,
    verdict: Verdict,
    /// Whether the round was finished; an error leaves calls without a vote.
    finished: bool,
}

/// Who stood behind a label of the brief.
#[derive(Serialize)]
struct Doctor<'a> {
    letter: char,
    agent: &'a str,
}

/// What an option got.
#[derive(Serialize)]
struct Vote<'a> {
    letter: Cow<'a, str>,
    weight: String,
    percent: i64,
    supporters: Vec<&'a str>,
    winner: bool,
    gold: bool,
}

/// A member that answered otherwise than in the round before.
#[derive(Serialize)]
struct Change<'a> {
    agent: &'a str,
    from: &'a str,
    to: &'a str,
    verdict: Verdict,
}

/// What a round is read against.
pub struct Bedside<'a, 'b> {
    pub panel: Panel<'a>,
    /// The letters that the question offers; none where the prompt listed no options.
    pub letters: &'b [char],
    pub gold: Option<&'a str>,
    pub before: Option<&'a RoundRecord>,
}

impl<'a> Round<'a> {
    /// A round from its record, where it was finished, and its calls in panel order.
    pub fn new(
        number: u32,
        record: Option<&'a RoundRecord>,
        calls: &[&'a CallRecord],
        bedside: &Bedside<'a, '_>,
        prompts: &mut Prompts<'a>,
    ) -> Round<'a> {
        let aggregate = record.map_or("", |record| &record.aggregate);
        let cards = calls.iter().map(|call| {
            let seat = bedside.panel.seat_of(call);
            let alone = calls
                .iter()
                .filter(|c| bedside.panel.seat_of(c) == seat)
                .count()
                == 1;
            let record = record.filter(|_| alone);
            Card::new(call, bedside.said(call, seat, record), prompts.number(call))
        });
        Round {
            number,
            cards: cards.collect(),
            doctors: record.map(doctors).unwrap_or_default(),
            brief: record.map_or("", |record| &record.brief),
            votes: record
                .map(|record| bedside.votes(record))
                .unwrap_or_default(),
            changes: record
                .map(|record| bedside.changes(record))
                .unwrap_or_default(),
            aggregate,
            verdict: Verdict::of(aggregate, bedside.gold),
            finished: record.is_some(),
        }
    }
}

fn doctors(record: &RoundRecord) -> Vec<Doctor<'_>> {
    let labelled = record.labels.iter().zip('A'..='Z');
    labelled
        .map(|(agent, letter)| Doctor { letter, agent })
        .collect()
}

impl<'a> Bedside<'a, '_> {
    /// What a member said: by the round's record where that has the member's only call, else by the call itself.
    fn said(&self, call: &'a CallRecord, seat: usize, record: Option<&'a RoundRecord>) -> Said<'a> {
        let counted = record.and_then(|record| {
            let answer = record.answers.get(seat)?;
            Some((
                answer,
                record.confidences.get(seat)?,
                record.weights.get(seat),
            ))
        });
        let (answer, confidence, weight) = match counted {
            Some((answer, confidence, weight)) => (
                Cow::Borrowed(answer.as_str()),
                confidence.to_string(),
                weight.map(|weight| weight.to_string()),
            ),
            None => (
                read::text(&call.record, "answer"),
                read::text(&call.record, "confidence").into_owned(),
                None,
            ),
        };
        let before = self.before.and_then(|before| before.answers.get(seat));
        Said {
            verdict: Verdict::of(&answer, self.gold),
            beyond: !answer.is_empty() && !self.letters.is_empty() && !self.offers(&answer),
            before: before
                .map(String::as_str)
                .filter(|before| *before != answer && counted.is_some()),
            answer,
            confidence,
            weight,
        }
    }

    fn offers(&self, answer: &str) -> bool {
        self.letters
            .iter()
            .any(|letter| answer == letter.to_string())
    }

    /// A bar for every option, then for every answer beyond them; weights summed as whole tenths, as the vote does.
    fn votes(&self, record: &'a RoundRecord) -> Vec<Vote<'a>> {
        let mut letters: Vec<Cow<'a, str>> = self
            .letters
            .iter()
            .map(|letter| Cow::Owned(letter.to_string()))
            .collect();
        for answer in record.answers.iter().filter(|answer| !answer.is_empty()) {
            if !letters.iter().any(|letter| letter == answer) {
                letters.push(Cow::Borrowed(answer));
            }
        }
        let tenths = |weight: &f64| (weight * 10.0).round() as i64;
        let total: i64 = record.weights.iter().map(tenths).sum();
        let vote = |letter: Cow<'a, str>| {
            let answers = record.answers.iter().zip(&record.weights).enumerate();
            let chosen: Vec<_> = answers
                .filter(|(_, (answer, _))| **answer == letter)
                .collect();
            let sum: i64 = chosen.iter().map(|(_, (_, weight))| tenths(weight)).sum();
            Vote {
                weight: format!("{:.1}", sum as f64 / 10.0),
                percent: if total > 0 { sum * 100 / total } else { 0 },
                supporters: chosen
                    .iter()
                    .map(|&(seat, _)| self.panel.agent_at(seat))
                    .collect(),
                winner: letter == record.aggregate,
                gold: self.gold == Some(letter.as_ref()),
                letter,
            }
        };
        letters.into_iter().map(vote).collect()
    }

    fn changes(&self, record: &'a RoundRecord) -> Vec<Change<'a>> {
        let before = self.before.map_or(&[][..], |before| &before.answers);
        let pairs = before.iter().zip(&record.answers).enumerate();
        pairs
            .filter(|(_, (from, to))| from != to)
            .map(|(seat, (from, to))| Change {
                agent: self.panel.agent_at(seat),
                from,
                to,
                verdict: Verdict::of(to, self.gold),
            })
            .collect()
    }
}
