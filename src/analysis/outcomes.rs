//! What a run says, item by item: one reader for questions and notes.
//!
//! Graded are the items whose gold every run has, in the plan's order. Where an item errored and was tried again, its last line counts.

use std::collections::{BTreeMap, HashMap};

use itertools::Itertools;

use super::facts::Facts;
use super::metrics::agreement::Trajectories;
use super::metrics::bootstrap::Units;
use super::metrics::cost::Cost;
use super::metrics::near_duplicates::units;
use super::metrics::over_runs::OverRuns;
use crate::data::Item;
use crate::experiment::chain;
use crate::experiment::contents::Contents;
use crate::record::{AnswerLine, CallLine, ItemLine, NoteLine, RoundLine, Stage};

/// The outcomes of a run: items × runs.
#[derive(Clone, Debug)]
pub struct Outcomes<'a> {
    /// The run as it was read.
    pub contents: &'a Contents,
    /// The graded items' ids.
    pub items: Vec<&'a str>,
    /// Their lines.
    pub graded: Facts<&'a ItemLine>,
    /// `[runs][items of the plan]`, with gold and without; `None` where a run has not reached an item.
    pub lines: Vec<Vec<Option<&'a ItemLine>>>,
}

/// Which answers of a question are compared (MED-MAD, Appendix B.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before any interaction.
    Initial,
    /// The first round of interaction; the initial one where there was none.
    FirstRound,
    /// The last round that ran.
    Last,
}

impl<'a> Outcomes<'a> {
    /// Of a run that was read, finished or not.
    pub fn of(contents: &'a Contents) -> Outcomes<'a> {
        let items = &contents.plan.dataset.items;
        let mut by_run: BTreeMap<u32, HashMap<&str, &ItemLine>> = BTreeMap::new();
        for line in &contents.items.records {
            by_run.entry(line.run()).or_default().insert(line.item(), line);
        }
        let in_order = |run: HashMap<&str, &'a ItemLine>| {
            let lines = items.iter().map(|item| run.get(item.as_str()).copied());
            lines.collect()
        };
        let lines: Vec<Vec<Option<&ItemLine>>> = by_run.into_values().map(in_order).collect();
        let has_gold = |line: Option<&ItemLine>| line.is_some_and(|line| line.correct().is_some());
        let is_graded =
            |item: &usize| !lines.is_empty() && lines.iter().all(|run| has_gold(run[*item]));
        let graded: Vec<usize> = (0..items.len()).filter(is_graded).collect();
        let of_run = |run: &Vec<Option<&'a ItemLine>>| {
            graded.iter().filter_map(|item| run[*item]).collect::<Vec<_>>()
        };
        Outcomes {
            items: graded.iter().map(|item| &*items[*item]).collect(),
            graded: Facts(lines.iter().map(of_run).collect()),
            lines,
            contents,
        }
    }

    /// The directory, as it was named.
    pub fn name(&self) -> String {
        self.contents.path.display().to_string()
    }

    /// The models of the panel, each once, in the order of the agents.
    pub fn models(&self) -> Vec<String> {
        self.contents.plan.panel.iter().map(|member| member.backbone.clone()).unique().collect()
    }

    /// The text of an item's option, as the run put it.
    fn option(&self, item: &str, letter: &str) -> Option<&str> {
        let mut letters = letter.chars();
        let letter = letters.next().filter(|_| letters.next().is_none())?;
        match self.contents.texts.get(item)? {
            Item::Question(question) => question.option(letter),
            Item::Note(_) => None,
        }
    }

    /// The text of the option that a line chooses, for another run may have it at another letter; else what the line says.
    pub fn chosen<'b>(&'b self, line: &'b ItemLine) -> &'b str {
        self.option(line.item(), line.says()).unwrap_or(line.says())
    }

    /// Each graded item's unit in a bootstrap: those that ask nearly the same stand and fall together.
    pub fn units(&self) -> Units {
        let texts = self.items.iter().map(|item| self.contents.texts.get(*item));
        Units::of(&units(&texts.collect::<Vec<_>>()))
    }

    /// The graded items of every unit of more than one.
    pub fn near_duplicates(&self) -> Vec<Vec<String>> {
        let groups = self.units().0.into_iter().filter(|group| group.len() > 1);
        groups.map(|group| group.iter().map(|at| self.items[*at].to_owned()).collect()).collect()
    }

    /// Of the graded items, where they are questions.
    pub fn answers(&self) -> Facts<&'a AnswerLine> {
        self.graded.filter_map(|line| line.answer())
    }

    /// Of the graded items, where they are notes.
    pub fn notes(&self) -> Facts<&'a NoteLine> {
        self.graded.filter_map(|line| line.note())
    }

    /// Whether the final answers, or the flags, are right; an item that errored is wrong.
    pub fn right(&self) -> Facts<bool> {
        self.graded.map(|line| line.correct() == Some(true))
    }

    /// The share of them that is right; `None` without gold.
    pub fn accuracy(&self) -> Option<OverRuns> {
        self.right().share(|is_right| *is_right)
    }

    /// Whether the vote of round 0 would have been right.
    pub fn round0(&self) -> Facts<bool> {
        self.answers().map(|answer| {
            let first = answer.rounds.first();
            first.is_some_and(|round| Some(&round.aggregate) == answer.gold.as_ref())
        })
    }

    /// The letters of the first and the last answers.
    pub fn trajectories(&self) -> Facts<Trajectories<'a>> {
        self.answers().map(|&answer| Trajectories {
            initial: letters(answer, When::Initial),
            last: letters(answer, When::Last),
            gold: answer.gold.as_deref().unwrap_or_default(),
        })
    }

    /// The calls of each run and item, each once, in the order of their keys.
    pub fn calls(&self) -> BTreeMap<(u32, &'a str), Vec<&'a CallLine>> {
        let calls = chain::by_key(&self.contents.calls.records).into_values();
        by_key(calls, |call| (call.run, call.item.as_str()))
    }

    /// What was said for every question's answers; those that say nothing are left out.
    pub fn texts(&self, when: When) -> Facts<Vec<String>> {
        let calls = self.calls();
        self.answers().map(|answer| {
            let Some(round) = round(answer, when) else { return Vec::new() };
            let calls = calls.get(&(answer.run, answer.item.as_str()));
            let of_round =
                |call: &&&CallLine| (call.stage, call.round) == (round.stage, round.round);
            let calls = calls.into_iter().flatten().filter(of_round);
            calls.filter_map(|call| call.record.trajectory()).collect()
        })
    }

    /// Items times runs that errored, graded or not.
    pub fn n_errors(&self) -> usize {
        let lines = self.lines.iter().flatten().flatten();
        lines.filter(|line| line.error().is_some()).count()
    }

    /// What all items cost, graded or not; `None` without items.
    pub fn cost(&self) -> Option<Cost> {
        let plan = &self.contents.plan;
        let items = plan.dataset.items.len() * plan.runs as usize;
        Cost::of(&self.contents.calls.records, items)
    }

    /// Whether the notes are MEDEC's, whose ROUGE is another than MedErrBench's.
    pub fn is_medec(&self) -> bool {
        // So were those of `medec-uw`, which earlier versions read.
        self.contents.plan.dataset.format.starts_with("medec")
    }
}

/// What has the same key together, in its order.
pub fn by_key<K: Ord, T: Copy>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(T) -> K,
) -> BTreeMap<K, Vec<T>> {
    let mut found: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for one in all {
        found.entry(key(one)).or_default().push(one);
    }
    found
}

fn round(answer: &AnswerLine, when: When) -> Option<&RoundLine> {
    let rounds = || {
        let is_trajectory =
            |round: &&RoundLine| matches!(round.stage, Stage::Initial | Stage::Round);
        answer.rounds.iter().filter(is_trajectory)
    };
    let initial = || rounds().find(|round| round.stage == Stage::Initial);
    match when {
        When::Initial => initial(),
        When::FirstRound => rounds().find(|round| round.stage == Stage::Round).or_else(initial),
        When::Last => rounds().next_back(),
    }
}

fn letters(answer: &AnswerLine, when: When) -> Vec<&str> {
    let answers = round(answer, when).map(|round| round.answers.iter().map(String::as_str));
    answers.into_iter().flatten().collect()
}
