//! One item of one run: its row in the list, and what opening it shows. Questions and notes share all of it but what `question.rs` and
//! `note.rs` fill in.

mod answers;
mod card;
mod correction;
mod diff;
pub mod flag;
mod note;
mod note_card;
pub mod prompts;
mod question;
mod read;
pub mod step;
pub mod text;
mod trajectory;

use minijinja::value::Value;
use serde::Serialize;

use crate::analysis::notes::ScoresByPair;
use crate::experiment::link::Link;
use crate::experiment::plan::MemberPlan;
use crate::record::{CallLine, ItemLine, ItemText, SearchLine};
use crate::text::ellipsis;
use correction::Correction;
use flag::{Badge, Flag};
use prompts::Prompts;
use step::Step;
use text::Text;

/// Characters of the text that a row of the list shows.
const EXCERPT_CHARS: usize = 150;

/// What a case is made from.
pub struct ItemRecords<'a, 'b> {
    pub item: &'a ItemLine,
    /// As the item was put; `None` where the run does not hold it.
    pub text: Option<&'a ItemText>,
    /// In the order in which they were made.
    pub calls: &'b [&'a CallLine],
    /// In the order in which they were made.
    pub searches: &'b [&'a SearchLine],
    /// The same item in all runs.
    pub runs: &'b [&'a ItemLine],
    pub panel: &'a [MemberPlan],
    pub neural: &'b ScoresByPair,
}

#[derive(Serialize)]
pub struct ItemCard<'a> {
    anchor: String,
    id: &'a str,
    pub run: u32,
    pub flags: Vec<Flag>,
    badges: Vec<Badge>,
    excerpt: String,
    text: Option<Text<'a>>,
    /// A letter, or an error and its sentence; `–` where there is no gold.
    gold: String,
    found: Mark,
    #[serde(flatten)]
    own: Own<'a>,
    /// Of a system that searches.
    way: Option<Value>,
    steps: Vec<Step<'a>>,
    error: Option<&'a str>,
    elsewhere: Vec<Elsewhere>,
}

/// What differs between kinds of items.
#[derive(Default, Serialize)]
pub struct Own<'a> {
    /// Of the text, as HTML names it; empty where nothing says.
    lang: &'static str,
    /// What round 0 alone would have answered.
    first: Option<Mark>,
    trail: Vec<Leg<'a>>,
    /// `–` where there is none.
    confidence: String,
    /// Sentences on how the answer stands to gold.
    outcome: Vec<String>,
    counts: String,
    tie: bool,
    rationale: &'a str,
    correction: Option<Correction>,
}

/// How an answer stands to gold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Correctness {
    Right,
    Wrong,
    #[default]
    Ungraded,
}

impl Correctness {
    pub fn of(answer: &str, gold: Option<&str>) -> Correctness {
        Correctness::from(gold.map(|gold| gold == answer))
    }
}

impl From<Option<bool>> for Correctness {
    fn from(is_right: Option<bool>) -> Correctness {
        match is_right {
            Some(true) => Correctness::Right,
            Some(false) => Correctness::Wrong,
            None => Correctness::Ungraded,
        }
    }
}

/// An answer in a few words, and how it stands to gold.
#[derive(Default, Serialize)]
pub struct Mark {
    said: String,
    verdict: Correctness,
}

/// A part of the way to the answer: its name, and the answers of a round or how a stage was settled.
pub type Leg<'a> = (String, Vec<Turn<'a>>);

#[derive(Serialize)]
pub struct Turn<'a> {
    agent: &'a str,
    said: String,
    verdict: Correctness,
    /// Whether it is another than the agent's own before.
    changed: bool,
}

/// What another run made of the item.
#[derive(Serialize)]
pub struct Elsewhere {
    run: u32,
    anchor: String,
    found: Mark,
}

impl Elsewhere {
    pub fn of(item: &ItemLine) -> Elsewhere {
        Elsewhere { run: item.run(), anchor: anchor(item), found: found(item) }
    }
}

impl<'a> ItemCard<'a> {
    pub fn new(source: &ItemRecords<'a, '_>, prompts: &mut Prompts<'a>) -> ItemCard<'a> {
        let item = source.item;
        let text = match (item, source.text) {
            (_, Some(ItemText::Question(text))) => Some(Text::of_question(text)),
            (ItemLine::Note(note), Some(ItemText::Note(text))) => Some(Text::of_note(text, note)),
            _ => None,
        };
        let flags = Flag::of(item, source.calls);
        let others = source.runs.iter().filter(|other| other.run() != item.run());
        let elsewhere = others.map(|other| Elsewhere::of(other));
        ItemCard {
            anchor: anchor(item),
            id: item.item(),
            run: item.run(),
            badges: flags.iter().filter_map(|flag| flag.badge()).collect(),
            flags,
            gold: gold(item),
            found: found(item),
            excerpt: text.as_ref().map_or(String::new(), |text| excerpt(&text.plain())),
            text,
            own: match item {
                ItemLine::Answer(item) => question::own(item),
                ItemLine::Note(note) => note::own(note, source.neural),
            },
            way: item.note().and_then(|note| trajectory::way(note, source.calls, source.searches)),
            steps: step::steps(source, prompts),
            error: item.error(),
            elsewhere: elsewhere.collect(),
        }
    }
}

fn found(item: &ItemLine) -> Mark {
    match item {
        ItemLine::Answer(item) => question::found(item),
        ItemLine::Note(note) => note::found(note),
    }
}

pub fn gold(item: &ItemLine) -> String {
    let gold = match item {
        ItemLine::Answer(item) => item.gold.clone(),
        ItemLine::Note(note) => note::wanted(note),
    };
    gold.unwrap_or("–".to_owned())
}

/// The item's own address in the page: unique, stable, and plain enough to be typed.
fn anchor(item: &ItemLine) -> String {
    let key = item.key();
    format!("{}/{}/{}", spell(&key.dataset), key.run, spell(&key.item))
}

/// A name in an address: letters, digits, and what else is plain.
fn spell(name: &str) -> String {
    let spell = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("~{other:02x}"),
    };
    name.bytes().map(spell).collect()
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ellipsis(&line, EXCERPT_CHARS)
}
