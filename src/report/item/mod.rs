//! One item of one run: its row in the list, and what opening it shows. Questions and notes share all of it but what `question.rs` and
//! `note.rs` fill in.

use std::collections::BTreeMap;

use filter::{Badge, Property};
use itertools::Itertools;
use minijinja::context;
use minijinja::value::{Serde, Value};
use prompts::Prompts;
use serde::Serialize;

use crate::analysis::notes::ScoresByPair;
use crate::analysis::rating::marking::{Segment, segments};
use crate::data::Item;
use crate::experiment::link::Link;
use crate::experiment::plan::MemberPlan;
use crate::record::{CallLine, ItemLine, SearchLine};
use crate::text::ellipsis;

mod card;
mod correction;
pub mod filter;
mod note;
pub mod prompts;
mod question;
pub mod step;
mod trajectory;

/// Characters of the text that a row of the list shows.
const EXCERPT_CHARS: usize = 150;

/// What a case is made from.
pub struct ItemRecords<'a, 'b> {
    pub item: &'a ItemLine,
    /// As the item was put; `None` where the run does not hold it.
    pub text: Option<&'a Item>,
    /// In the order in which they were made.
    pub calls: &'b [&'a CallLine],
    /// In the order in which they were made.
    pub searches: &'b [&'a SearchLine],
    /// The same item in all runs.
    pub runs: &'b [&'a ItemLine],
    pub panel: &'a [MemberPlan],
    pub neural: &'b ScoresByPair,
}

/// A case as its template takes it, and what it is found by.
pub struct ItemCard {
    pub flags: Vec<Property>,
    pub shown: Value,
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
    correction: Option<Value>,
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

#[derive(Default, Serialize)]
pub struct Turn<'a> {
    agent: &'a str,
    said: String,
    verdict: Correctness,
    /// Whether it is another than the agent's own before.
    changed: bool,
}

/// What another run made of the item.
pub fn elsewhere(item: &ItemLine) -> Value {
    context! { run => item.run(), anchor => anchor(item), found => Serde(found(item)) }
}

impl ItemCard {
    pub fn new<'a>(source: &ItemRecords<'a, '_>, prompts: &mut Prompts<'a>) -> ItemCard {
        let item = source.item;
        let text = match (item, source.text) {
            (_, Some(Item::Question(text))) => {
                let options = text.options.iter().map(|one| (one.letter, one.text.as_str()));
                let stem = text.question.trim().to_owned();
                let stem = Segment { text: stem, located: false, gold: false };
                Some((vec![stem], Some(options.collect::<BTreeMap<_, _>>()), text.image.as_deref()))
            }
            (ItemLine::Note(note), Some(Item::Note(text))) => {
                let gold = note.gold.as_ref().and_then(|gold| gold.sentence_id);
                Some((segments(text, [note.sentence_id, gold]), None, None))
            }
            _ => None,
        };
        let line = text.iter().flat_map(|(segments, ..)| segments);
        let line = line.map(|one| one.text.as_str()).collect::<String>();
        let flags = Property::of(item, source.calls);
        let others = source.runs.iter().filter(|other| other.run() != item.run());
        let own = match item {
            ItemLine::Answer(item) => question::own(item),
            ItemLine::Note(note) => note::own(note, source.neural),
        };
        let badges: Vec<Badge> = flags.iter().filter_map(|flag| flag.badge()).collect();
        let way = item.note().and_then(|note| trajectory::way(note, source.calls, source.searches));
        let shown = context! {
            anchor => anchor(item),
            id => item.item(),
            run => item.run(),
            flags => Serde(&flags),
            badges => Serde(badges),
            // The beginning of the text, on one line.
            excerpt => ellipsis(&line.split_whitespace().join(" "), EXCERPT_CHARS),
            text => text.map(|(segments, options, image)| context! {
                // Their concatenation is the text.
                segments => Serde(segments),
                // Of a question: letter to text.
                options => Serde(options),
                // Where the question's image is; pages load none.
                image,
            }),
            // A letter, or an error and its sentence; `–` where there is no gold.
            gold => gold(item),
            found => Serde(found(item)),
            // Of a system that searches.
            way,
            steps => step::steps(source, prompts),
            error => item.error(),
            elsewhere => others.map(|other| elsewhere(other)).collect::<Vec<_>>(),
            ..Value::from(Serde(own))
        };
        ItemCard { flags, shown }
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
