//! Which items are rated, and in which order: the same items of every run, drawn and shuffled by a seed.
//!
//! The paper draws 20 notes and has every system's result for each rated (20 × 4 = 80). Its score is one of corrections, so
//! notes with an error come first: by the gold, or where a note has none, by any run's flag. Others fill up what is missing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::RatingError;
use super::key::{Key, KeyEntry, KeyRun};
use super::sheet::{Entry, NoteShown, QuestionShown, Sheet, Shown};
use crate::comparison::questions;
use crate::data::subset::sample;
use crate::data::{self, Dataset, Format, Item, ItemKind};
use crate::run::contents::Contents;
use crate::run::records::ItemRecord;
use crate::run::verify::read_finished;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Items of every run.
    pub n_items: usize,
    pub seed: u64,
    /// Whether raters see what the file says is right.
    pub show_gold: bool,
}

/// Reads the runs, which must have finished, and the data that they ran on: `data`, or where the first run's plan says.
///
/// # Errors
/// A directory that is no finished run, does not verify, or is there twice; runs over different files; other data.
pub fn read(
    directories: &[PathBuf],
    data: Option<&Path>,
) -> Result<(Vec<Contents>, Dataset), RatingError> {
    let mut runs: Vec<Contents> = Vec::new();
    for directory in directories {
        let run = read_finished(directory)?.0;
        if let Some(first) = runs.iter().find(|one| one.plan_sha256 == run.plan_sha256) {
            return Err(RatingError::SameRun {
                first: first.path.clone(),
                other: run.path,
            });
        }
        runs.push(run);
    }
    let Some(first) = runs.first() else {
        return Err(RatingError::NothingToRate);
    };
    let planned = &first.plan.dataset;
    let path = data.unwrap_or(Path::new(&planned.path));
    let dataset = data::load(path, planned.format.parse()?)?;
    if dataset.sha256 != planned.sha256 {
        return Err(RatingError::OtherData {
            path: path.to_owned(),
            expected: planned.sha256.clone(),
            found: dataset.sha256,
        });
    }
    Ok((runs, dataset))
}

/// Draws the items among those that ended without an error in every run, and shuffles what the runs made of them. Of a run
/// with several repetitions the first is rated.
///
/// # Errors
/// Runs over different files, or without an item that all of them finished.
pub fn draw(
    runs: &[Contents],
    dataset: &Dataset,
    order: &Order,
) -> Result<(Sheet, Key), RatingError> {
    let shared = questions::shared(runs, true)?;
    let outcomes: Vec<Outcomes<'_>> = runs.iter().map(Outcomes::first).collect();
    let items: HashMap<&str, &Item> = dataset.items.iter().map(|one| (one.id(), one)).collect();
    let finished = shared.iter().filter_map(|id| {
        let is_finished = outcomes.iter().all(|run| run.by_item.contains_key(&**id));
        items.get(id.as_str()).copied().filter(|_| is_finished)
    });
    let (first, others): (Vec<&Item>, Vec<&Item>) =
        finished.partition(|item| is_first_choice(item, &outcomes));
    let mut drawn = pick(&first, order.n_items, order.seed);
    drawn.extend(pick(&others, order.n_items - drawn.len(), order.seed));
    if drawn.is_empty() {
        return Err(RatingError::NothingToRate);
    }

    let pairs: Vec<(&Item, usize)> = drawn
        .iter()
        .flat_map(|item| (0..runs.len()).map(move |run| (*item, run)))
        .collect();
    let digits = pairs.len().to_string().len();
    let (mut entries, mut key_entries) = (Vec::new(), Vec::new());
    for (item, run) in pick(&pairs, pairs.len(), order.seed.wrapping_add(1)) {
        let code = format!("E{:0digits$}", entries.len() + 1);
        let Some(shown) = shown(item, outcomes[run].by_item[item.id()], order.show_gold) else {
            continue;
        };
        key_entries.push(KeyEntry {
            code: code.clone(),
            item: item.id().to_owned(),
            run,
        });
        entries.push(Entry { code, shown });
    }
    let synthetic = runs.iter().any(|run| run.plan.synthetic);
    let sheet = Sheet::new(kind(dataset.format), synthetic, entries);
    let sheet = sheet.map_err(std::io::Error::from)?;
    let key = Key {
        kind: Key::kind(),
        sheet: sheet.sheet.clone(),
        seed: order.seed,
        gold_shown: order.show_gold,
        dataset: dataset.name.clone(),
        dataset_sha256: dataset.sha256.clone(),
        runs: outcomes.iter().map(Outcomes::key).collect(),
        entries: key_entries,
    };
    Ok((sheet, key))
}

fn kind(format: Format) -> ItemKind {
    format.kind()
}

/// The outcomes of a run's first repetition that are no errors.
struct Outcomes<'a> {
    contents: &'a Contents,
    run: u32,
    by_item: BTreeMap<String, &'a ItemRecord>,
}

impl Outcomes<'_> {
    fn first(contents: &Contents) -> Outcomes<'_> {
        let outcomes = contents.outcomes();
        let run = outcomes.keys().map(|key| key.run).min().unwrap_or_default();
        let finished = outcomes.into_iter().filter(|(key, record)| {
            key.run == run && record.error().is_none()
        });
        Outcomes {
            contents,
            run,
            by_item: finished.map(|(key, record)| (key.item, record)).collect(),
        }
    }

    fn key(&self) -> KeyRun {
        let plan = &self.contents.plan;
        let mut models: Vec<String> = Vec::new();
        for member in &plan.panel {
            if !models.contains(&member.backbone) {
                models.push(member.backbone.clone());
            }
        }
        KeyRun {
            path: self.contents.path.display().to_string(),
            system: plan.system.clone(),
            models,
            plan_sha256: self.contents.plan_sha256.clone(),
            run: self.run,
            synthetic: plan.synthetic,
        }
    }
}

/// A note with an error in it, as far as one can tell; any question.
fn is_first_choice(item: &Item, outcomes: &[Outcomes<'_>]) -> bool {
    let Item::Note(note) = item else {
        return true;
    };
    let flags = |run: &Outcomes<'_>| match run.by_item.get(&note.id) {
        Some(ItemRecord::Note(record)) => record.flag == Some(true),
        _ => false,
    };
    match &note.gold {
        Some(gold) => gold.is_wrong(),
        None => outcomes.iter().any(flags),
    }
}

/// `None` where the record is of another kind than the item, which no run writes.
fn shown(item: &Item, record: &ItemRecord, gold: bool) -> Option<Shown> {
    match (item, record) {
        (Item::Note(note), ItemRecord::Note(record)) => {
            Some(Shown::Note(NoteShown::of(note, record, gold)))
        }
        (Item::Question(question), ItemRecord::Answer(record)) => {
            Some(Shown::Question(QuestionShown::of(question, record, gold)))
        }
        _ => None,
    }
}

/// Some of them, in the order of the draw.
fn pick<T: Copy>(all: &[T], limit: usize, seed: u64) -> Vec<T> {
    let places = sample(all.len(), limit, seed).into_iter();
    places.map(|place| all[place]).collect()
}
