//! One item of one run: its row in the list, and everything that opening it shows.

use serde::Serialize;

use super::flag::Flag;
use super::panel::{Panel, same_place};
use super::prompts::{Prompts, user_message};
use super::question::{Choice, Question, split_prompt};
use super::round::{Round, Setting};
use super::step::steps;
use crate::record::{AnswerLine, CallLine, RoundLine, Stage};
use crate::text::ellipsis;

/// Characters of the question that a row of the list shows.
const EXCERPT_CHARS: usize = 150;

#[derive(Serialize)]
pub struct Case<'a> {
    anchor: String,
    id: &'a str,
    pub run: u32,
    pub gold: Option<&'a str>,
    pub flags: Vec<Flag>,
    /// What round 0 alone would have answered.
    pub at_first: Option<Mark<'a>>,
    answer: Mark<'a>,
    /// The answers by round, in the order of each round.
    trail: Vec<Vec<Turn<'a>>>,
    team_confidence: String,
    excerpt: String,
    stem: Option<&'a str>,
    options: Vec<Offered<'a>>,
    rounds: Vec<Round<'a>>,
    rationale: &'a str,
    pub rounds_run: u32,
    calls: u32,
    tie: bool,
    error: Option<&'a str>,
    /// The same question in the other runs.
    elsewhere: Vec<Elsewhere<'a>>,
    #[serde(skip)]
    agents: Option<&'a [String]>,
}

/// What another run made of a question.
#[derive(Serialize)]
struct Elsewhere<'a> {
    run: u32,
    anchor: String,
    answer: Mark<'a>,
}

/// An answer against gold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Right,
    Wrong,
    Ungraded,
}

impl Verdict {
    pub fn of(answer: &str, gold: Option<&str>) -> Verdict {
        match gold {
            Some(gold) if gold == answer => Verdict::Right,
            Some(_) => Verdict::Wrong,
            None => Verdict::Ungraded,
        }
    }
}

/// A letter and how it stands against gold.
#[derive(Serialize)]
pub struct Mark<'a> {
    letter: &'a str,
    pub verdict: Verdict,
}

impl<'a> Mark<'a> {
    fn new(letter: &'a str, gold: Option<&str>) -> Mark<'a> {
        Mark {
            letter,
            verdict: Verdict::of(letter, gold),
        }
    }
}

/// An agent's answer in a round, and whether it is another than its own before.
#[derive(Serialize)]
struct Turn<'a> {
    agent: &'a str,
    letter: &'a str,
    verdict: Verdict,
    changed: bool,
}

/// An option of the question.
#[derive(Serialize)]
struct Offered<'a> {
    letter: &'a str,
    text: &'a str,
    gold: bool,
    answer: bool,
}

impl<'a> Offered<'a> {
    fn new(option: Choice<'a>, item: &AnswerLine) -> Offered<'a> {
        Offered {
            letter: option.letter,
            text: option.text,
            gold: item.gold.as_deref() == Some(option.letter),
            answer: item.answer == option.letter,
        }
    }
}

impl<'a> Case<'a> {
    /// A case from its record and its calls.
    pub fn new(
        item: &'a AnswerLine,
        calls: &[&'a CallLine],
        panel: Panel<'a>,
        prompts: &mut Prompts<'a>,
    ) -> Case<'a> {
        let gold = item.gold.as_deref();
        let first = item.rounds.first();
        let question = question(calls);
        let options = question
            .as_ref()
            .map_or(&[][..], |question| &question.options);
        let stem = question.as_ref().map(|question| question.stem);
        Case {
            anchor: anchor(&item.dataset, item.run, &item.item),
            id: &item.item,
            run: item.run,
            gold,
            flags: Flag::of(item, calls),
            at_first: first.map(|round| Mark::new(&round.aggregate, gold)),
            answer: Mark::new(&item.answer, gold),
            trail: trail(item),
            team_confidence: format!("{:.2}", item.team_confidence),
            excerpt: stem.map(excerpt).unwrap_or_default(),
            stem,
            rounds: rounds(item, calls, panel, options, prompts),
            options: options
                .iter()
                .map(|&option| Offered::new(option, item))
                .collect(),
            rationale: &item.rationale,
            rounds_run: item.rounds_run,
            calls: item.calls,
            tie: item.tie,
            error: item.error.as_deref(),
            elsewhere: Vec::new(),
            agents: agents(item),
        }
    }

    /// Notes what other runs made of the question.
    pub fn compare(&mut self, others: &[&'a AnswerLine]) {
        let others = others.iter().filter(|other| other.run != self.run);
        let elsewhere = |other: &&'a AnswerLine| Elsewhere {
            run: other.run,
            anchor: anchor(&other.dataset, other.run, &other.item),
            answer: Mark::new(&other.answer, other.gold.as_deref()),
        };
        self.elsewhere = others.map(elsewhere).collect();
    }

    /// Those who answered, where they were the same in every round.
    pub fn agents(&self) -> Option<&'a [String]> {
        self.agents
    }

    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

/// The question, from the first prompt that lists its options, or else from what was asked for a first answer.
pub fn question<'a>(calls: &[&'a CallLine]) -> Option<Question<'a>> {
    let mut calls: Vec<&CallLine> = calls.to_vec();
    calls.sort_by_key(|call| (call.round, call.seq));
    let prompts = calls.iter().filter_map(|call| user_message(call));
    let mut questions = prompts.map(split_prompt);
    questions
        .find(|question| !question.options.is_empty())
        .or_else(|| {
            let mut initial = calls.iter().filter(|call| call.stage == Stage::Initial);
            user_message(initial.next()?).map(split_prompt)
        })
}

fn agents(item: &AnswerLine) -> Option<&[String]> {
    let (first, others) = item.rounds.split_first()?;
    let same = others.iter().all(|other| other.agents == first.agents);
    same.then_some(&first.agents)
}

fn trail<'a>(item: &'a AnswerLine) -> Vec<Vec<Turn<'a>>> {
    let rounds = item.rounds.iter().enumerate();
    let turns = |(number, round): (usize, &'a RoundLine)| {
        let before = number
            .checked_sub(1)
            .and_then(|before| item.rounds.get(before));
        let of_before = |place: usize| {
            let before = before?;
            before
                .answers
                .get(same_place(&round.agents, place, &before.agents)?)
        };
        let answers = round.answers.iter().enumerate();
        let turn = |(place, letter): (usize, &'a String)| Turn {
            agent: round.agents.get(place).map_or("?", String::as_str),
            letter,
            verdict: Verdict::of(letter, item.gold.as_deref()),
            changed: of_before(place).is_some_and(|before| before != letter),
        };
        answers.map(turn).collect()
    };
    rounds.map(turns).collect()
}

fn rounds<'a>(
    item: &'a AnswerLine,
    calls: &[&'a CallLine],
    panel: Panel<'a>,
    options: &[Choice<'a>],
    prompts: &mut Prompts<'a>,
) -> Vec<Round<'a>> {
    let mut before = None;
    let steps = steps(item, calls, panel);
    let rounds = steps.iter().map(|step| {
        let setting = Setting {
            options,
            gold: item.gold.as_deref(),
            before,
        };
        before = step.record.or(before);
        Round::new(step, &setting, prompts)
    });
    rounds.collect()
}

/// The item's own address in the page: unique, stable, and plain enough to be typed.
pub fn anchor(dataset: &str, run: u32, item: &str) -> String {
    format!("{}/{run}/{}", spell(dataset), spell(item))
}

/// A name in an address: letters, digits, and what else is plain.
pub fn spell(name: &str) -> String {
    let spell = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("~{other:02x}"),
    };
    name.bytes().map(spell).collect()
}

/// The beginning of a text, on one line.
pub fn excerpt(stem: &str) -> String {
    let line = stem.split_whitespace().collect::<Vec<_>>().join(" ");
    ellipsis(&line, EXCERPT_CHARS)
}
