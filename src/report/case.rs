//! One item of one run: its row in the list, and everything that opening it shows.

use serde::Serialize;

use super::flag::Flag;
use super::panel::Panel;
use super::prompts::{Prompts, user_message};
use super::question::{Choice, Question, split_prompt};
use super::round::{Round, Setting};
use crate::run::records::{CallRecord, ItemRecord};

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
    /// The answers by round, in panel order.
    trail: Vec<Vec<Step<'a>>>,
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

/// A member's answer in a round, and whether it is another than in the round before.
#[derive(Serialize)]
struct Step<'a> {
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
    fn new(option: Choice<'a>, item: &ItemRecord) -> Offered<'a> {
        Offered {
            letter: option.letter,
            text: option.text,
            gold: item.gold.as_deref() == Some(option.letter),
            answer: item.answer == option.letter,
        }
    }
}

impl<'a> Case<'a> {
    /// A case from its record and its calls, in the order of rounds, then panel order.
    pub fn new(
        item: &'a ItemRecord,
        calls: &[&'a CallRecord],
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
            anchor: anchor(item),
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
        }
    }

    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

fn question<'a>(calls: &[&'a CallRecord]) -> Option<Question<'a>> {
    let initial = calls.iter().find(|call| call.round == 0)?;
    user_message(initial).map(split_prompt)
}

fn trail(item: &ItemRecord) -> Vec<Vec<Step<'_>>> {
    let before = [None].into_iter().chain(item.rounds.iter().map(Some));
    let rounds = item.rounds.iter().zip(before);
    rounds
        .map(|(round, before)| {
            let answers = round.answers.iter().enumerate();
            let steps = answers.map(|(seat, letter)| Step {
                agent: round.agents.get(seat).map_or("?", String::as_str),
                letter,
                verdict: Verdict::of(letter, item.gold.as_deref()),
                changed: before
                    .and_then(|before| before.answers.get(seat))
                    .is_some_and(|before| before != letter),
            });
            steps.collect()
        })
        .collect()
}

/// Every round that has a record or a call.
fn rounds<'a>(
    item: &'a ItemRecord,
    calls: &[&'a CallRecord],
    panel: Panel<'a>,
    options: &[Choice<'a>],
    prompts: &mut Prompts<'a>,
) -> Vec<Round<'a>> {
    let recorded = item.rounds.iter().map(|round| round.round);
    let mut numbers: Vec<u32> = recorded
        .chain(calls.iter().map(|call| call.round))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let record = |number: u32| item.rounds.iter().find(|round| round.round == number);
    let view = |number: u32| {
        let setting = Setting {
            panel,
            options,
            gold: item.gold.as_deref(),
            before: number.checked_sub(1).and_then(record),
        };
        let calls: Vec<_> = calls
            .iter()
            .filter(|call| call.round == number)
            .copied()
            .collect();
        Round::new(number, record(number), &calls, &setting, prompts)
    };
    numbers.into_iter().map(view).collect()
}

/// The item's own address in the page: unique, stable, and plain enough to be typed.
fn anchor(item: &ItemRecord) -> String {
    format!(
        "{}/{}/{}",
        spell(&item.dataset),
        item.run,
        spell(&item.item)
    )
}

fn spell(name: &str) -> String {
    let spell = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("~{other:02x}"),
    };
    name.bytes().map(spell).collect()
}

fn excerpt(stem: &str) -> String {
    let line = stem.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
