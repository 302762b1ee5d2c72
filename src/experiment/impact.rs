//! What a new version of the program, or other weights, prompts or number formats change of what is kept: every case generated anew and
//! classified, as `impact.json` has it (docs/impact.md).

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::compare::Change;
use super::contents::Contents;
use super::difference::FieldDifference;
use super::link::Link;
use super::plan::Plan;
use super::replay::{self, Asked, work_again};
use super::spec::Spec;
use super::{clock, versions};
use crate::diagnosis::Failure;
use crate::record::{CallKey, ItemKey, ItemLine, Schema, found_in_words};

/// All that was compared.
#[derive(Debug, Serialize)]
pub struct Impact {
    pub schema: Schema,
    /// In UTC.
    pub created_at: String,
    /// The version that generated the cases anew.
    pub version: &'static str,
    /// How many cases are of each class.
    pub counts: BTreeMap<Class, usize>,
    pub kept: Vec<Kept>,
}

/// A run directory, or what was loaded for lines of an audit trail.
#[derive(Debug, Serialize)]
pub struct Kept {
    pub path: PathBuf,
    /// What answered then.
    pub system: String,
    /// What is another now, the value then first.
    pub changed: Vec<FieldDifference>,
    pub cases: Vec<Case>,
}

/// An item of a run, or a line of a trail.
#[derive(Debug, Default, Serialize)]
pub struct Case {
    pub name: String,
    pub item: Option<String>,
    pub run: Option<u32>,
    pub line: Option<u64>,
    pub class: Class,
    /// The outcome in words, then and now; `None` where it cannot be compared.
    pub from: Option<String>,
    pub to: Option<String>,
    /// Why it is of its class; `None` where all is equal.
    pub why: Option<String>,
    /// What differs, in the order of the log: the first is where the case parts from what it was.
    pub calls: Vec<CallChange>,
    /// The fields of the outcome that differ, the value then first.
    pub outcome: Vec<FieldDifference>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Another outcome.
    Changed,
    /// The outcome is the same, and not all that led to it.
    SameOutcome,
    /// Every byte of the calls and of the outcome.
    Equal,
    #[default]
    NotComparable,
}

/// A call, or a search, that is not what it was.
#[derive(Debug, Serialize)]
pub struct CallChange {
    pub call: String,
    /// Of a run's call.
    pub key: Option<CallKey>,
    pub kind: Kind,
    /// The first token of the completion that differs, from 0.
    pub token: Option<usize>,
    /// The fields that differ, the value then first; those of the kind come first.
    pub fields: Vec<FieldDifference>,
}

/// In what a call differs first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It was asked something else.
    Prompt,
    /// It was asked the same, and said something else.
    Completion,
    /// It said the same, and was read otherwise.
    Reading,
    /// Its sampling, its seed or counts of tokens; the results of a search.
    Other,
    /// It was made then alone.
    Gone,
    /// It is made now alone.
    New,
}

/// The fields of each kind, by their beginnings; a trail has `reasons`, `says` and `confidence`.
const FIELDS: [(Kind, &[&str]); 3] = [
    (Kind::Prompt, &["messages", "query"]),
    (Kind::Completion, &["text", "tokens", "finish_reason", "reasons"]),
    (Kind::Reading, &["record", "parse", "says", "confidence"]),
];

impl Impact {
    pub fn of(kept: Vec<Kept>) -> Impact {
        let classes = [Class::Changed, Class::SameOutcome, Class::Equal, Class::NotComparable];
        let mut counts = BTreeMap::from(classes.map(|class| (class, 0)));
        for case in kept.iter().flat_map(|kept| &kept.cases) {
            *counts.entry(case.class).or_default() += 1;
        }
        let (created_at, version) = (clock::utc_now(), versions::THIS);
        Impact { schema: Schema, created_at, version, counts, kept }
    }
}

impl Case {
    /// `words` tell the outcome then and now, and are equal only where it is.
    pub fn of(
        name: impl Display,
        [from, to]: [String; 2],
        calls: Vec<CallChange>,
        outcome: Vec<FieldDifference>,
    ) -> Case {
        let class = match (from == to, calls.is_empty() && outcome.is_empty()) {
            (false, _) => Class::Changed,
            (true, false) => Class::SameOutcome,
            (true, true) => Class::Equal,
        };
        let why = calls.first().map(ToString::to_string).or_else(|| {
            outcome.first().map(|field| format!("no call differs, but the outcome: {field}"))
        });
        let (name, from, to) = (name.to_string(), Some(from), Some(to));
        Case { name, class, from, to, why, calls, outcome, ..Case::default() }
    }

    pub fn not_comparable(name: impl Display, why: String) -> Case {
        Case { name: name.to_string(), why: Some(why), ..Case::default() }
    }
}

impl CallChange {
    /// `None` where no field differs.
    pub fn of(call: String, change: Change) -> Option<CallChange> {
        let made = |kind| CallChange {
            call: call.clone(),
            key: None,
            kind,
            token: None,
            fields: Vec::new(),
        };
        let mut fields = match change {
            Change::OnlyLeft => return Some(made(Kind::Gone)),
            Change::OnlyRight => return Some(made(Kind::New)),
            Change::Fields(fields) if fields.is_empty() => return None,
            Change::Fields(fields) => fields,
        };
        let is_of = |field: &FieldDifference, names: &[&str]| {
            names.iter().any(|name| field.field.starts_with(name))
        };
        let has = |(_, names): &&(Kind, &[&str])| fields.iter().any(|field| is_of(field, names));
        let (kind, names) = FIELDS.iter().find(has).copied().unwrap_or((Kind::Other, &[]));
        fields.sort_by_key(|field| !is_of(field, names));
        let place = |field: &FieldDifference| {
            field.field.strip_prefix("tokens[")?.strip_suffix(']')?.parse().ok()
        };
        Some(CallChange { token: fields.iter().find_map(place), fields, ..made(kind) })
    }
}

impl Display for CallChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.call)?;
        if let Some(token) = self.token {
            write!(f, ", token {token}")?;
        }
        f.write_str(match self.kind {
            Kind::Prompt => ": another prompt",
            Kind::Completion => ": another completion",
            Kind::Reading => ": no text differs, but its reading",
            Kind::Other => ": other settings or results",
            Kind::Gone => ": not made any more",
            Kind::New => ": not made then",
        })?;
        let first = self.fields.first();
        first.map_or(Ok(()), |one| write!(f, ", {} {} → {}", one.field, one.left, one.right))
    }
}

/// Generates every case of a run anew by `spec`, which [`Spec::from_plan`] gave and which may have other models, prompts and number
/// formats than the plan.
///
/// # Errors
/// Other items, or another system; models that do not give the same bytes again; whatever is missing or malformed.
pub fn of_run(contents: &Contents, spec: Spec, stop: Arc<AtomicBool>) -> Result<Kept, Failure> {
    let (plan, outcomes) = (&contents.plan, contents.outcomes());
    let (mut wanted, mut cases) = (Vec::new(), Vec::new());
    let runs = |item| (1..=plan.runs).map(move |run| (item, run));
    for (item, run) in plan.dataset.items.iter().flat_map(runs) {
        let key = ItemKey { dataset: plan.dataset.name.clone(), run, item: item.clone() };
        let why = match outcomes.get(&key).map(|line| (line, line.error(), plan.unrepeatable())) {
            None => "the run has no outcome of it".to_owned(),
            Some((_, Some(error), _)) => format!("it errored then: {error}"),
            Some((_, None, Some(reason))) => reason,
            Some((line, None, None)) => {
                wanted.push(*line);
                continue;
            }
        };
        cases.push(of_item(&key, Case::not_comparable(&key, why)));
    }
    let mut changed = Vec::new();
    if !wanted.is_empty() {
        let accept = |here: &Plan| comparable(contents, here).map(|found| changed = found);
        let asked = Asked { items: &[], allow_version: true, by_prefill: true, only: None };
        let again = work_again(contents, spec, (&wanted, &asked), accept, stop)?;
        cases.extend(again.cases.into_iter().map(classify));
    }
    cases.sort_by(|a, b| (&a.item, a.run).cmp(&(&b.item, b.run)));
    Ok(Kept { path: contents.path.clone(), system: plan.system.clone(), changed, cases })
}

/// In what the present plan differs from the run's.
fn comparable(contents: &Contents, here: &Plan) -> Result<Vec<FieldDifference>, Failure> {
    const SAME: [&str; 4] = ["dataset.name", "dataset.items", "dataset.shard", "seed"];
    if let Some(reason) = here.unrepeatable() {
        let hint = "what changes shows only in models that give the same bytes again: name local ones (--panel), without --fast";
        return Err(Failure::usage(reason, hint));
    }
    let changed = contents.plan.differences(here)?;
    let is_other = |one: &&FieldDifference| {
        one.field == "system" || SAME.iter().any(|name| one.field.starts_with(name))
    };
    let other: Vec<String> = changed.iter().filter(is_other).map(ToString::to_string).collect();
    if other.is_empty() {
        return Ok(changed);
    }
    let (path, other) = (contents.path.display(), other.join("; "));
    Err(Failure::usage(
        format!("{path}: other items, or another system: {other}"),
        "only the same items can be compared: name their file with --data",
    ))
}

/// What names a model, a device or a corpus is no difference of a call: the changes of the plan say so.
fn classify(case: replay::Case) -> Case {
    let change = |what: String, mut change: Change| {
        if let Change::Fields(fields) = &mut change {
            let is_name = |field: &str| ["request", "backbone"].contains(&field);
            fields.retain(|one| !is_name(&one.field) && !one.field.starts_with("corpus"));
        }
        CallChange::of(what, change)
    };
    let calls = case.calls.into_iter().filter_map(|(key, how)| {
        let CallKey { agent, round, purpose, sample, .. } = &key;
        let call = format!("{purpose} of {agent}, round {round}, sample {sample}");
        Some(CallChange { key: Some(key.clone()), ..change(call, how)? })
    });
    let searches = case.searches.into_iter();
    let searches = searches.filter_map(|(key, how)| change(key.to_string(), how));
    // Other results of the same query come before the calls that read them; another query comes of a call.
    let (mut changes, later): (Vec<_>, Vec<_>) = searches.partition(|one| one.kind == Kind::Other);
    changes.extend(calls.chain(later));
    let key = case.was.key();
    of_item(&key, Case::of(&key, [&case.was, &case.now].map(in_words), changes, case.outcome))
}

fn of_item(key: &ItemKey, case: Case) -> Case {
    Case { item: Some(key.item.clone()), run: Some(key.run), ..case }
}

fn in_words(line: &ItemLine) -> String {
    match (line.error(), line) {
        (Some(error), _) => format!("errored: {error}"),
        (None, ItemLine::Answer(line)) => answer_in_words(&line.answer),
        (None, ItemLine::Note(line)) => {
            note_in_words(line.flag.said(), line.sentence_id, line.correction.as_deref())
        }
    }
}

pub fn answer_in_words(letter: &str) -> String {
    if letter.is_empty() { "no answer".to_owned() } else { letter.to_owned() }
}

pub fn note_in_words(flag: Option<bool>, sentence: Option<usize>, to: Option<&str>) -> String {
    let found = flag.map_or_else(|| "not read".to_owned(), |flag| found_in_words(flag, sentence));
    to.map_or(found.clone(), |correction| format!("{found}: {correction}"))
}
