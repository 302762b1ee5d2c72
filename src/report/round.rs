//! One step of a round: each speaker's card, the brief they were shown, the vote, and who changed; or notes.

use std::borrow::Cow;

use serde::Serialize;

use super::card::{Card, Said};
use super::case::Verdict;
use super::panel::{places, same_place};
use super::prompts::Prompts;
use super::question::Choice;
use super::read;
use super::step::Step;
use super::vote::Vote;
use crate::record::{CallLine, RoundLine, Stage};

#[derive(Serialize)]
pub struct Round<'a> {
    number: u32,
    title: &'static str,
    /// What notes were made for.
    purpose: &'a str,
    answers: bool,
    doctors: Vec<Doctor<'a>>,
    brief: &'a str,
    cards: Vec<Card<'a>>,
    votes: Vec<Vote<'a>>,
    changes: Vec<Change<'a>>,
    /// Whether some of those who answer had answered before.
    can_change: bool,
    /// Whether the answers were counted; an error leaves calls without, and so does whoever decides alone.
    counted: bool,
}

/// Who stood behind a label of the brief.
#[derive(Serialize)]
struct Doctor<'a> {
    letter: char,
    agent: &'a str,
}

/// A speaker that answered otherwise than before.
#[derive(Serialize)]
struct Change<'a> {
    agent: &'a str,
    from: &'a str,
    to: &'a str,
    verdict: Verdict,
}

/// What a step is read against.
pub struct Setting<'a, 'b> {
    /// What the question offers; nothing where the prompt listed no options.
    pub options: &'b [Choice<'a>],
    pub gold: Option<&'a str>,
    /// The answers before.
    pub before: Option<&'a RoundLine>,
}

impl<'a> Round<'a> {
    pub fn new(step: &Step<'a>, setting: &Setting<'a, '_>, prompts: &mut Prompts<'a>) -> Round<'a> {
        let record = step.record;
        let places = places(&step.calls, record.map_or(&[], |record| &record.agents));
        let calls = step.calls.iter().zip(places);
        let cards = calls.map(|(&call, place)| {
            let counted = record.zip(place);
            Card::new(call, setting.said(call, counted), prompts.number(call))
        });
        Round {
            number: step.round,
            title: title(step.stage),
            purpose: step.calls.first().map_or("", |call| &call.purpose),
            answers: step.answers(),
            cards: cards.collect(),
            doctors: record.map(doctors).unwrap_or_default(),
            brief: record.map_or("", |record| &record.brief),
            votes: record.map_or(Vec::new(), |record| Vote::count(record, setting)),
            changes: record.map_or(Vec::new(), |record| setting.changes(record)),
            can_change: record.is_some_and(|record| setting.heard_before(record)),
            counted: record.is_some(),
        }
    }
}

fn title(stage: Stage) -> &'static str {
    match stage {
        Stage::Initial => "first answers, each alone",
        Stage::Round => "answers after hearing of the others'",
        Stage::Final => "the decision",
        Stage::Aside => "notes",
    }
}

fn doctors(record: &RoundLine) -> Vec<Doctor<'_>> {
    let labelled = record.labels.iter().zip('A'..='Z');
    labelled
        .map(|(agent, letter)| Doctor { letter, agent })
        .collect()
}

impl<'a> Setting<'a, '_> {
    /// What a speaker said: by the round's record where that counts the call, else by the call itself.
    fn said(&self, call: &'a CallLine, counted: Option<(&'a RoundLine, usize)>) -> Said<'a> {
        let stated = || read::text(&call.record, "confidence").into_owned();
        let of_record = counted.and_then(|(record, place)| {
            let answer = record.answers.get(place)?;
            let confidence = record.confidences.get(place).map(f64::to_string);
            Some((
                Cow::Borrowed(answer.as_str()),
                confidence.unwrap_or_else(stated),
                record.weights.get(place).map(f64::to_string),
            ))
        });
        let (answer, confidence, weight) = of_record.unwrap_or_else(|| {
            let answer = read::text(&call.record, "answer");
            (answer, stated(), None)
        });
        let before = counted.and_then(|(record, place)| self.answer_before(record, place));
        Said {
            expected: call.stage != Stage::Aside,
            verdict: Verdict::of(&answer, self.gold),
            beyond: !answer.is_empty()
                && !self.options.is_empty()
                && !self.options.iter().any(|option| option.letter == answer),
            before: before.filter(|before| *before != answer),
            answer,
            confidence,
            weight,
        }
    }

    /// What the agent at `place` answered before.
    fn answer_before(&self, record: &RoundLine, place: usize) -> Option<&'a str> {
        let before = self.before?;
        let place = same_place(&record.agents, place, &before.agents)?;
        before.answers.get(place).map(String::as_str)
    }

    fn heard_before(&self, record: &RoundLine) -> bool {
        (0..record.answers.len()).any(|place| self.answer_before(record, place).is_some())
    }

    fn changes(&self, record: &'a RoundLine) -> Vec<Change<'a>> {
        let answers = record.agents.iter().zip(&record.answers).enumerate();
        let change = |(place, (agent, to)): (usize, (&'a String, &'a String))| {
            let from = self.answer_before(record, place)?;
            (from != to).then(|| Change {
                agent,
                from,
                to,
                verdict: Verdict::of(to, self.gold),
            })
        };
        answers.filter_map(change).collect()
    }
}
