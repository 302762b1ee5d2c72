//! One round of a case: each member's card, the brief they were shown, the vote, and who changed.

use std::borrow::Cow;

use serde::Serialize;

use super::card::{Card, Said};
use super::case::Verdict;
use super::panel::Panel;
use super::prompts::Prompts;
use super::question::Choice;
use super::read;
use super::vote::Vote;
use crate::run::records::{CallRecord, RoundRecord};

#[derive(Serialize)]
pub struct Round<'a> {
    number: u32,
    doctors: Vec<Doctor<'a>>,
    brief: &'a str,
    cards: Vec<Card<'a>>,
    votes: Vec<Vote<'a>>,
    changes: Vec<Change<'a>>,
    /// Whether the round was finished; an error leaves calls without a vote.
    finished: bool,
}

/// Who stood behind a label of the brief.
#[derive(Serialize)]
struct Doctor<'a> {
    letter: char,
    agent: &'a str,
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
pub struct Setting<'a, 'b> {
    pub panel: Panel<'a>,
    /// What the question offers; nothing where the prompt listed no options.
    pub options: &'b [Choice<'a>],
    pub gold: Option<&'a str>,
    pub before: Option<&'a RoundRecord>,
}

impl<'a> Round<'a> {
    /// A round from its record, where it was finished, and its calls in panel order.
    pub fn new(
        number: u32,
        record: Option<&'a RoundRecord>,
        calls: &[&'a CallRecord],
        setting: &Setting<'a, '_>,
        prompts: &mut Prompts<'a>,
    ) -> Round<'a> {
        let cards = calls.iter().map(|call| {
            let seat = setting.panel.seat_of(call);
            let of_seat = calls.iter().filter(|c| setting.panel.seat_of(c) == seat);
            let alone = of_seat.count() == 1;
            let record = record.filter(|_| alone);
            Card::new(call, setting.said(call, record), prompts.number(call))
        });
        Round {
            number,
            cards: cards.collect(),
            doctors: record.map(doctors).unwrap_or_default(),
            brief: record.map_or("", |record| &record.brief),
            votes: record.map_or(Vec::new(), |record| Vote::count(record, setting)),
            changes: record.map_or(Vec::new(), |record| setting.changes(record)),
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

impl<'a> Setting<'a, '_> {
    /// What a member said: by the round's record where that has the member's only call, else by the call itself.
    fn said(&self, call: &'a CallRecord, record: Option<&'a RoundRecord>) -> Said<'a> {
        let at = record.and_then(|record| record.agents.iter().position(|a| *a == call.agent));
        let counted = record.zip(at).and_then(|(record, at)| {
            Some((
                record.answers.get(at)?,
                record.confidences.get(at)?,
                record.weights.get(at),
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
        let before = self
            .before
            .zip(at)
            .and_then(|(before, at)| before.answers.get(at));
        Said {
            verdict: Verdict::of(&answer, self.gold),
            beyond: !answer.is_empty()
                && !self.options.is_empty()
                && !self.options.iter().any(|option| option.letter == answer),
            before: before
                .map(String::as_str)
                .filter(|before| *before != answer && counted.is_some()),
            answer,
            confidence,
            weight,
        }
    }

    fn changes(&self, record: &'a RoundRecord) -> Vec<Change<'a>> {
        let before = self.before.map_or(&[][..], |before| &before.answers);
        let pairs = before.iter().zip(&record.answers).enumerate();
        pairs
            .filter(|(_, (from, to))| from != to)
            .map(|(at, (from, to))| Change {
                agent: record.agents.get(at).map_or("?", String::as_str),
                from,
                to,
                verdict: Verdict::of(to, self.gold),
            })
            .collect()
    }
}
