//! Which items are rated, and in which order: the same items of every run, drawn and shuffled by a seed.
//!
//! The paper draws 20 notes and has every system's result for each rated (20 × 4 = 80). Its score is one of corrections, so
//! notes with an error come first: by the gold, or where a note has none, by any run's flag. Other notes fill the rest.

use std::collections::BTreeMap;

use super::key::{KeyEntry, KeyRun, SheetKey};
use super::sheet::{Entry, Sheet, Shown};
use crate::analysis::comparison::shared;
use crate::analysis::outcomes::Outcomes;
use crate::data::Item;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::random::sample;
use crate::record::{ItemLine, Schema};

/// Outcomes of a run that are no errors, by item.
type Finished<'a> = BTreeMap<&'a str, &'a ItemLine>;

/// Draws `n_items` items of every run, among those that ended without an error in every run, and shuffles what the runs made of them. Of a run
/// with several repetitions the first is rated.
///
/// # Errors
/// Runs over different files, or without an item that all of them finished.
pub fn draw(runs: &[Contents], n_items: usize, seed: u64) -> Result<(Sheet, SheetKey), Failure> {
    let shared = shared(runs)?;
    let outcomes: Vec<Outcomes<'_>> = runs.iter().map(Outcomes::of).collect();
    let finished: Vec<Finished<'_>> = outcomes.iter().map(finished).collect();
    let is_finished = |item: &&Item| finished.iter().all(|run| run.contains_key(item.id()));
    // Runs over one file have the same texts.
    let items = shared.iter().filter_map(|id| runs[0].texts.get(id)).filter(is_finished);
    let (first, others): (Vec<&Item>, Vec<&Item>) =
        items.partition(|item| is_first_choice(item, &finished));
    let mut drawn = pick(&first, n_items, seed);
    drawn.extend(pick(&others, n_items - drawn.len(), seed));
    if drawn.is_empty() {
        return Err(Failure::usage(
            "there is nothing to rate: no item ended without an error in every run",
            "`wardround resume DIR` tries the items that errored again",
        ));
    }

    let pairs: Vec<(&Item, usize)> =
        drawn.iter().flat_map(|item| (0..runs.len()).map(move |run| (*item, run))).collect();
    let digits = pairs.len().to_string().len();
    let (mut entries, mut key_entries) = (Vec::new(), Vec::new());
    for (item, run) in pick(&pairs, pairs.len(), seed.wrapping_add(1)) {
        let code = format!("E{:0digits$}", entries.len() + 1);
        let Some(shown) = Shown::of(item, finished[run][item.id()]) else { continue };
        let item = item.id().to_owned();
        key_entries.push(KeyEntry { code: code.clone(), item, run });
        entries.push(Entry { code, shown });
    }
    let runs = outcomes.iter().map(|outcomes| KeyRun {
        path: outcomes.name(),
        system: outcomes.contents.plan.system.clone(),
        models: outcomes.models(),
        plan_sha256: outcomes.contents.plan_sha256.clone(),
        synthetic: outcomes.contents.plan.synthetic,
    });
    let runs: Vec<KeyRun> = runs.collect();
    let sheet = Sheet::new(runs.iter().any(|run| run.synthetic), entries);
    let sheet = sheet.map_err(std::io::Error::from)?;
    let code = sheet.sheet.clone();
    let key = SheetKey { schema: Schema, sheet: code, seed, runs, entries: key_entries };
    Ok((sheet, key))
}

/// What a run's first repetition finished.
fn finished<'a>(outcomes: &Outcomes<'a>) -> Finished<'a> {
    let lines = outcomes.lines.first().into_iter().flatten().flatten();
    lines.filter(|line| line.error().is_none()).map(|line| (line.item(), *line)).collect()
}

/// A note that has an error by its gold, or by any run's flag where it has none; any question.
fn is_first_choice(item: &Item, runs: &[Finished<'_>]) -> bool {
    let Item::Note(note) = item else { return true };
    let flags = |run: &Finished<'_>| match run.get(note.id.as_str()) {
        Some(ItemLine::Note(line)) => line.flag.has_error(),
        _ => false,
    };
    match &note.gold {
        Some(gold) => gold.flag,
        None => runs.iter().any(flags),
    }
}

/// Some of them, in the order of the draw.
fn pick<T: Copy>(all: &[T], limit: usize, seed: u64) -> Vec<T> {
    let places = sample(all.len(), limit, seed).into_iter();
    places.map(|place| all[place]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;
    use crate::data::Note;
    use crate::experiment::directory::Directory;
    use crate::experiment::fixtures::{failed_item, item, plan, start, write_results};
    use crate::experiment::log::Log;
    use crate::experiment::texts;
    use crate::record::{GoldLine, Language, NoteLine};

    const NOTES: [&str; 6] = ["wrong1", "right1", "wrong2", "right2", "open1", "open2"];

    /// `wrong…` have an error in their second sentence, `right…` none, `open…` no gold.
    fn note(id: &str) -> Note {
        let is_wrong = id.starts_with("wrong");
        Note {
            id: id.to_owned(),
            text: format!("Seen with {id}. Give A. Home."),
            sentences: vec![format!("Seen with {id}."), "Give A.".into(), "Home.".into()],
            language: Language::English,
            gold: (!id.starts_with("open")).then(|| GoldLine {
                flag: is_wrong,
                sentence_id: is_wrong.then_some(1),
                sentence: is_wrong.then(|| "Give A.".to_owned()),
                correction: is_wrong.then(|| "Give the gold drug.".to_owned()),
                kind: None,
                keywords: Vec::new(),
            }),
        }
    }

    fn record(id: &str, flag: Option<bool>, error: Option<&str>) -> NoteLine {
        let is_wrong = flag == Some(true);
        NoteLine {
            dataset: "wards".to_owned(),
            item: id.to_owned(),
            language: Language::English,
            flag: flag.into(),
            sentence_id: is_wrong.then_some(1),
            sentence: "Give A.".to_owned(),
            correction: is_wrong.then(|| "Give B.".to_owned()),
            calls: 1,
            error: error.map(str::to_owned),
            ..NoteLine::default()
        }
    }

    /// A finished run of a system on all notes, whose records `of` makes.
    fn run(folder: &Path, system: &str, of: fn(&str) -> NoteLine) -> Contents {
        let mut plan = plan();
        plan.system = system.to_owned();
        plan.runs = 1;
        plan.dataset.name = "wards".to_owned();
        plan.dataset.format = "notes".to_owned();
        plan.dataset.items = NOTES.map(str::to_owned).to_vec();
        let path = folder.join(system);
        let texts = NOTES.map(|id| Item::Note(note(id)));
        plan.dataset.items_sha256 = texts::sha256(&texts).unwrap();
        let log = Log::start(Directory::create(&path, &plan, &texts).unwrap()).unwrap();
        for id in NOTES {
            log.item(of(id)).unwrap();
        }
        log.finish().unwrap();
        write_results(&path, 1).unwrap();
        Contents::read(&path).unwrap()
    }

    fn items(key: &SheetKey) -> HashSet<&str> {
        key.entries.iter().map(|entry| &*entry.item).collect()
    }

    /// One flags everything but open2, the other nothing; neither finishes right1.
    fn two_runs(folder: &Path) -> [Contents; 2] {
        let flagging = |id: &str| record(id, Some(id != "open2"), None);
        let silent = |id: &str| match id {
            "right1" => record(id, None, Some("the prompt is too long")),
            _ => record(id, Some(false), None),
        };
        [run(folder, "flagging-system", flagging), run(folder, "silent-system", silent)]
    }

    #[test]
    fn notes_with_an_error_come_first_and_unfinished_ones_never() {
        let scratch = tempfile::tempdir().unwrap();
        let runs = two_runs(scratch.path());
        for seed in 0..20 {
            let key = draw(&runs, 3, seed).unwrap().1;
            assert_eq!(items(&key), ["wrong1", "wrong2", "open1"].into());
            let key = draw(&runs, 4, seed).unwrap().1;
            assert!(items(&key).is_superset(&["wrong1", "wrong2", "open1"].into()));
            assert!(!items(&key).contains("right1"));
            assert_eq!(key.entries.len(), 8);
        }
        let key = draw(&runs, 20, 42).unwrap().1;
        assert_eq!(items(&key).len(), 5);
    }

    #[test]
    fn every_drawn_item_is_rated_for_every_run_in_an_order_of_the_seed() {
        let scratch = tempfile::tempdir().unwrap();
        let runs = two_runs(scratch.path());
        let (sheet, key) = draw(&runs, 5, 42).unwrap();
        let pairs: HashSet<(&str, usize)> =
            key.entries.iter().map(|one| (&*one.item, one.run)).collect();
        assert_eq!(pairs.len(), 10);
        assert_eq!(sheet.entries[9].code, "E10");
        assert_eq!(key.entries[0].code, "E01");
        let again = draw(&runs, 5, 42).unwrap();
        assert_eq!(serde_json::to_value(again.0).unwrap(), serde_json::to_value(&sheet).unwrap());
        assert_eq!(again.1, key);
        let other = draw(&runs, 5, 43).unwrap();
        assert_ne!(other.1.entries, key.entries);
        assert_ne!(other.0.sheet, sheet.sheet);
        // Neither run is always the first of an item's two.
        let firsts: HashSet<usize> = items(&key)
            .into_iter()
            .filter_map(|item| key.entries.iter().find(|one| one.item == item))
            .map(|entry| entry.run)
            .collect();
        assert_eq!(firsts.len(), 2);
    }

    #[test]
    fn an_entry_shows_what_its_run_said_and_nothing_tells_the_run() {
        let scratch = tempfile::tempdir().unwrap();
        let runs = two_runs(scratch.path());
        let (sheet, key) = draw(&runs, 5, 42).unwrap();
        for (entry, unblinded) in sheet.entries.iter().zip(&key.entries) {
            let Shown::Note(note) = &entry.shown else { panic!("{entry:?}") };
            match (unblinded.run, &*unblinded.item) {
                (1, _) | (0, "open2") => {
                    assert_eq!(note.finding, "No error found.");
                    assert_eq!((&*note.marked, &note.correction), ("", &None));
                }
                _ => {
                    assert_eq!(note.marked, "Give A.");
                    assert_eq!(note.after, " Home.");
                    assert_eq!(note.correction.as_deref(), Some("Give B."));
                }
            }
        }
        let page = crate::report::rating::render(&sheet).unwrap();
        for named in ["flagging", "silent", "tiny", "gold drug", "wrong1.jsonl"] {
            assert!(!page.contains(named), "{named}");
        }
        assert!(page.contains("are not rated. Export all the same?"));
    }

    #[test]
    fn an_unreadable_flag_and_a_flag_without_a_place_are_said() {
        let scratch = tempfile::tempdir().unwrap();
        let of = |id: &str| match id {
            "wrong1" => record(id, None, None),
            _ => NoteLine {
                sentence_id: None,
                correction: Some("  ".to_owned()),
                ..record(id, Some(true), None)
            },
        };
        let runs = [run(scratch.path(), "one", of)];
        let (sheet, key) = draw(&runs, 6, 1).unwrap();
        for (entry, unblinded) in sheet.entries.iter().zip(&key.entries) {
            let Shown::Note(note) = &entry.shown else { panic!("{entry:?}") };
            assert_eq!(note.correction, None);
            assert_eq!(
                note.finding,
                match &*unblinded.item {
                    "wrong1" => "No verdict that could be read.",
                    _ => "An error found, but no sentence named.",
                }
            );
        }
    }

    #[test]
    fn of_several_repetitions_the_first_is_rated_and_runs_without_an_outcome_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, plan) = (scratch.path().join("run"), plan());
        let log = start(&path, &plan);
        for name in &plan.dataset.items {
            log.item(failed_item(name, 0)).unwrap();
            log.item(item(name, 1)).unwrap();
        }
        log.finish().unwrap();
        let contents = Contents::read(&path).unwrap();
        let error = draw(&[contents], 6, 1).unwrap_err();
        assert!(error.to_string().starts_with("there is nothing to rate"), "{error}");
    }

    #[test]
    fn what_was_written_stays_text() {
        let scratch = tempfile::tempdir().unwrap();
        let of = |id: &str| NoteLine {
            correction: Some("</script><script>alert(1)</script><!-- \u{202E}".to_owned()),
            ..record(id, Some(true), None)
        };
        let runs = [run(scratch.path(), "one", of)];
        let (sheet, _) = draw(&runs, 6, 1).unwrap();
        let page = crate::report::rating::render(&sheet).unwrap();
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        assert!(!page.contains('\u{202E}') && page.contains("⟨U+202E⟩"));
        for request in ["http://", "https://", "src=", "url(", "@import", "<link", "fetch("] {
            assert!(!page.contains(request), "{request}");
        }
        let script = page.split("<script>").nth(1).unwrap();
        let script = script.split("</script>").next().unwrap();
        assert!(page.contains(&crate::report::content_policy(script)));
    }
}
