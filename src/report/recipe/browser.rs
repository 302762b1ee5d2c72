//! The page's data for browsing items: letters, rounds and answers of every cell, texts cut so that the page stays small.
//!
//! What there are thousands of is written as lists instead of objects; `browser.js` reads their fields in the same order.

use std::collections::HashMap;

use serde::Serialize;

use crate::data::ItemKind;
use crate::experiment::contents::Contents;
use crate::experiment::plan::MemberPlan;
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::cells::Cell;
use crate::experiment::recipe::file::DatasetEntry;
use crate::record::{AnswerLine, CallLine, ItemText, RoundLine, Stage};
use crate::report::item::flag::Flag;
use crate::report::item::spell;
use crate::report::item::step::{places, rounds};
use crate::text::{ellipsis, spell_hidden};

/// The most characters of all texts of answers together.
const TEXTS: usize = 3_000_000;
/// Characters of one, at least and at most.
const CUT: [usize; 2] = [48, 400];
/// Characters of a question.
const STEM: usize = 700;
const OPTION: usize = 120;

#[derive(Serialize)]
pub struct Browser {
    /// Names and labels; an item's flags are bits in this order.
    flags: Vec<(Flag, &'static str)>,
    /// Characters after which texts are cut.
    pub cut: usize,
    datasets: Vec<Dataset>,
    methods: Vec<String>,
    agents: Vec<Vec<String>>,
    texts: Vec<String>,
    cells: Vec<CellItems>,
}

#[derive(Serialize)]
struct Dataset {
    label: String,
    /// How the cells' pages spell it in the address of a case.
    anchor: String,
    questions: Vec<Question>,
}

#[derive(Serialize)]
struct Question {
    id: String,
    anchor: String,
    gold: String,
    stem: String,
    options: Vec<(String, String)>,
}

#[derive(Serialize)]
struct CellItems {
    dataset: usize,
    method: usize,
    /// The cell's own page, from the recipe's folder.
    page: String,
    runs: Vec<u32>,
    /// By run, then by the dataset's questions; `null` where there is no record.
    items: Vec<Vec<Option<Item>>>,
}

/// Flags, answer, confidence in percent (of an answer), error, rounds, rationale (a text).
#[derive(Serialize)]
struct Item(u32, String, Option<u32>, String, Vec<Round>, Option<usize>);

/// Number, stage, agents (a list), letters, texts.
#[derive(Serialize)]
struct Round(u32, Stage, usize, Vec<String>, Vec<Option<usize>>);

/// Texts without repeats, which items refer to by their places.
struct Pool {
    cut: usize,
    places: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Pool {
    fn put(&mut self, text: &str) -> Option<usize> {
        let text = shorten(text.trim(), self.cut);
        if text.is_empty() {
            return None;
        }
        if let Some(&place) = self.places.get(&text) {
            return Some(place);
        }
        self.texts.push(text.clone());
        self.places.insert(text, self.texts.len() - 1);
        Some(self.texts.len() - 1)
    }
}

/// Truncated, with hidden characters spelled out.
fn shorten(text: &str, cut: usize) -> String {
    ellipsis(&spell_hidden(text), cut)
}

impl Browser {
    /// Of cells in the order of the results.
    pub fn new(recipe: &Recipe, cells: &[(Cell<'_>, Contents)]) -> Browser {
        let answering = |call: &&CallLine| call.stage != Stage::Aside;
        let calls = cells.iter().flat_map(|(_, contents)| &contents.calls.records);
        let answers = calls.filter(answering).count();
        let cut = (TEXTS / answers.max(1)).clamp(CUT[0], CUT[1]);
        let mut browser = Browser {
            flags: Flag::all(ItemKind::Questions).map(|one| (one.flag, one.label)).collect(),
            cut,
            datasets: recipe.dataset.iter().map(|dataset| questions(dataset, cells)).collect(),
            methods: recipe.method.iter().map(|one| one.label.clone()).collect(),
            agents: Vec::new(),
            texts: Vec::new(),
            cells: Vec::new(),
        };
        let mut pool = Pool { cut, places: HashMap::new(), texts: Vec::new() };
        for (cell, contents) in cells {
            let mut datasets = recipe.dataset.iter();
            let mut methods = recipe.method.iter();
            let dataset = datasets.position(|one| one.name == cell.dataset.name);
            let method = methods.position(|one| one.name == cell.method.name);
            let (Some(dataset), Some(method)) = (dataset, method) else { continue };
            let items = browser.items(contents, &mut pool);
            browser.cells.push(CellItems {
                dataset,
                method,
                page: page_of(cell),
                runs: (1..=contents.plan.runs).collect(),
                items,
            });
        }
        browser.texts = pool.texts;
        browser
    }

    fn items(&mut self, contents: &Contents, pool: &mut Pool) -> Vec<Vec<Option<Item>>> {
        let plan = &contents.plan;
        let outcomes = contents.answers();
        let outcomes: HashMap<(u32, &str), &AnswerLine> =
            outcomes.values().map(|item| ((item.run, item.item.as_str()), *item)).collect();
        let mut calls: HashMap<(u32, &str), Vec<&CallLine>> = HashMap::new();
        for call in &contents.calls.records {
            calls.entry((call.run, &call.item)).or_default().push(call);
        }
        let mut runs = Vec::new();
        for run in 1..=plan.runs {
            let mut items = Vec::new();
            for id in &plan.dataset.items {
                let key = (run, id.as_str());
                let calls = calls.get(&key).map_or(&[][..], Vec::as_slice);
                let item = outcomes.get(&key);
                items.push(item.map(|item| self.item(item, calls, &plan.panel, pool)));
            }
            runs.push(items);
        }
        runs
    }

    fn item(
        &mut self,
        item: &AnswerLine,
        calls: &[&CallLine],
        panel: &[MemberPlan],
        pool: &mut Pool,
    ) -> Item {
        let all = Flag::all(ItemKind::Questions).enumerate();
        let own = Flag::of_answer(item, calls);
        let flags = all.map(|(bit, flag)| u32::from(own.contains(&flag.flag)) << bit);
        let groups = rounds(item, calls, panel);
        let rounds =
            groups.iter().filter_map(|group| Some(self.round(group.record?, &group.calls, pool)));
        let rounds = rounds.collect();
        Item(
            flags.sum(),
            spell_hidden(&item.answer),
            item.team_confidence.map(|sure| (sure * 100.0).round() as u32),
            item.error.as_deref().map_or(String::new(), |error| shorten(error, CUT[1])),
            rounds,
            pool.put(&item.rationale),
        )
    }

    fn round(&mut self, record: &RoundLine, calls: &[&CallLine], pool: &mut Pool) -> Round {
        let mut texts = vec![None; record.answers.len()];
        for (call, place) in calls.iter().zip(places(calls, &record.agents)) {
            if let Some(text) = place.and_then(|place| texts.get_mut(place)) {
                *text = call.record.trajectory().and_then(|said| pool.put(&said));
            }
        }
        let agents: Vec<String> = record.agents.iter().map(|name| spell_hidden(name)).collect();
        let known = self.agents.iter().position(|other| *other == agents);
        let agents = known.unwrap_or_else(|| {
            self.agents.push(agents);
            self.agents.len() - 1
        });
        let letters = record.answers.iter().map(|letter| spell_hidden(letter));
        Round(record.round, record.stage, agents, letters.collect(), texts)
    }

    /// A question's text and options by the dataset's place and its id.
    pub fn question(&self, dataset: usize, id: &str) -> Option<(&str, &[(String, String)])> {
        let mut questions = self.datasets.get(dataset)?.questions.iter();
        let question = questions.find(|question| question.id == id)?;
        Some((&question.stem, &question.options))
    }
}

/// Where a cell's own page lies, from the recipe's folder.
pub fn page_of(cell: &Cell<'_>) -> String {
    let directory = cell.directory(std::path::Path::new(""));
    format!("{}/report.html", directory.display())
}

/// The questions as the dataset's first cell puts them.
fn questions(dataset: &DatasetEntry, cells: &[(Cell<'_>, Contents)]) -> Dataset {
    let mut of_dataset = cells.iter().filter(|(cell, _)| cell.dataset.name == dataset.name);
    let contents = of_dataset.next().map(|(_, contents)| contents);
    let of = |contents: &Contents, id: &String| {
        let text = match contents.texts.get(id) {
            Some(ItemText::Question(text)) => Some(text),
            _ => None,
        };
        let options = text.iter().flat_map(|text| &text.options);
        Question {
            id: spell_hidden(id),
            anchor: spell(id),
            gold: text.and_then(|text| text.answer.clone()).unwrap_or_default(),
            stem: text.map_or(String::new(), |text| shorten(&text.question, STEM)),
            options: options
                .map(|(letter, text)| (letter.to_string(), shorten(text, OPTION)))
                .collect(),
        }
    };
    Dataset {
        label: dataset.label.clone(),
        anchor: contents.map_or(String::new(), |one| spell(&one.plan.dataset.name)),
        questions: contents.map_or(Vec::new(), |contents| {
            let items = contents.plan.dataset.items.iter();
            items.map(|id| of(contents, id)).collect()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters_and_kept_once() {
        let mut pool = Pool { cut: 4, places: HashMap::new(), texts: Vec::new() };
        assert_eq!(pool.put("  "), None);
        assert_eq!(pool.put("é漢字あいう"), Some(0));
        assert_eq!(pool.put("abc"), Some(1));
        assert_eq!(pool.put("é漢字あ other"), Some(0));
        assert_eq!(pool.texts, ["é漢字あ…", "abc"]);
    }

    #[test]
    fn nothing_in_the_data_ends_its_element() {
        let browser = Browser {
            flags: Vec::new(),
            cut: 48,
            datasets: Vec::new(),
            methods: vec!["</script><!-- \u{2028} & \"".to_owned()],
            agents: Vec::new(),
            texts: Vec::new(),
            cells: Vec::new(),
        };
        let json = crate::report::escape::script_json(&browser).unwrap();
        assert!(!json.contains(['<', '>', '&', '\u{2028}']));
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["methods"][0], "</script><!-- \u{2028} & \"");
    }
}
