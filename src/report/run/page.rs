//! What the template of a run's pages is given: one page where its cases fit, else the figures with the first cases, and pages of cases.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::kind;
use super::making::making;
use crate::analysis::by_key;
use crate::analysis::notes::ScoresByPair;
use crate::data::ItemKind;
use crate::experiment::contents::Contents;
use crate::record::{CallLine, ItemLine};
use crate::report::item::filter::{Filter, Property};
use crate::report::item::prompts::Prompts;
use crate::report::item::{ItemCard, ItemRecords};

/// Cases of a page at most: some 6 MB.
pub const CASES: usize = 200;

/// The file of a page, from 1.
pub fn file(number: usize) -> String {
    match number {
        1 => "report.html".to_owned(),
        number => format!("report-{number}.html"),
    }
}

/// The pages, `at_most` cases on each.
pub fn pages<'a>(contents: &'a Contents, neural: &ScoresByPair, at_most: usize) -> Vec<Value> {
    let plan = &contents.plan;
    let kind = kind(contents);
    let items = plan.dataset.items.iter().enumerate();
    let places: BTreeMap<&str, usize> = items.map(|(place, id)| (id.as_str(), place)).collect();
    // In the plan's order; an item that the plan does not name comes last.
    let place = |id: &str| places.get(id).copied().unwrap_or(usize::MAX);
    let mut items: Vec<&ItemLine> = contents.outcomes().into_values().collect();
    items.sort_by_key(|item| (item.run(), place(item.item()), item.item()));
    let mut calls: Vec<&CallLine> = contents.calls.records.iter().collect();
    calls.sort_by_key(|call| (call.run, place(&call.item), &call.item, call.round, call.seq));
    let calls_of = by_key(calls, |call| (call.run, call.item.as_str()));
    let searches = &contents.searches.records;
    let searches_of = by_key(searches, |search| (search.run, search.item.as_str()));
    let runs_of = by_key(items.iter().copied(), ItemLine::item);
    let mut prompts = Prompts::default();
    let case = |&item: &&'a ItemLine| {
        let source = ItemRecords {
            item,
            text: contents.texts.get(item.item()),
            calls: calls_of.get(&(item.run(), item.item())).map_or(&[], Vec::as_slice),
            searches: searches_of.get(&(item.run(), item.item())).map_or(&[], Vec::as_slice),
            runs: runs_of.get(item.item()).map_or(&[], Vec::as_slice),
            panel: &plan.panel,
            neural,
        };
        ItemCard::new(&source, &mut prompts)
    };
    let cases: Vec<ItemCard> = items.iter().map(case).collect();
    let parts: Vec<&[ItemCard]> = match cases.is_empty() {
        true => vec![&[]],
        false => cases.chunks(at_most).collect(),
    };
    let (noun, heads) = match kind {
        ItemKind::Questions => {
            ("question", ["gold", "round 0 → final", "answers, by round", "confidence"])
        }
        ItemKind::Notes => ("note", ["gold", "found", "detection › localisation", "confidence"]),
    };
    let shared = context! {
        plan => Serde(plan),
        system => plan.system_name(),
        n_items => plan.dataset.items.len(),
        noun,
        // A class of the list's rows.
        kind => match kind {
            ItemKind::Questions => "",
            ItemKind::Notes => "finding",
        },
        // Of the columns gold, answer, way to it, confidence.
        heads => heads,
        making => making(contents),
        runs => Serde(items.iter().map(|item| item.run()).collect::<BTreeSet<u32>>()),
        // Items times runs that the plan asks for.
        planned => plan.dataset.items.len() * plan.runs as usize,
        n_cases => cases.len(),
        prompts => Serde(prompts.0),
        // Each page's file, and its first and last case.
        pages => (1..=parts.len()).map(|number| {
            let first = (number - 1) * at_most + 1;
            context! { number, file => file(number), first, last => (first + at_most - 1).min(cases.len()) }
        }).collect::<Vec<_>>(),
        // Where links into another page lead; its script goes on to the page that has what they name.
        home => if parts.len() > 1 { file(1) } else { String::new() },
    };
    let page = |(index, part): (usize, &&[ItemCard])| {
        // Of the list, and how many cases it leaves.
        let filter = |(flag, _, label, _): &Filter| {
            context! {
                flag => Serde(flag),
                label => *label,
                count => part.iter().filter(|case| case.flags.contains(flag)).count(),
            }
        };
        context! {
            number => index + 1,
            next => (index + 1 < parts.len()).then(|| file(index + 2)),
            filters => Property::filters(kind).map(filter).collect::<Vec<_>>(),
            cases => part.iter().map(|case| case.shown.clone()).collect::<Vec<_>>(),
            ..shared.clone()
        }
    };
    parts.iter().enumerate().map(page).collect()
}
