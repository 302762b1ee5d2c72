//! What the reviews of MedReFlex are worth: whether high scores go with right answers, how many rejected answers were right, what the answer
//! after a reflexion changes, and how far the reviewers agree.
//!
//! An answer is the action that a turn ends with, as the reviewers see it: whether it names an error, and the note's sentence that it names,
//! word for word or else the most similar one. The parser's reply is not used, because a rejected answer has none. Only answers with at least
//! one review that could be read are counted.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::analysis::notes::calls_of;
use crate::data::Note;
use crate::experiment::contents::Contents;
use crate::record::{CallLine, GoldLine, ItemText, NoteLine, NoteText, TurnLine};
use crate::systems::medreflex::answer::{self, Answer};
use crate::systems::medreflex::review::CRITERIA;
use crate::systems::medreflex::step::Action;

/// The width of a band, and the lowest and the highest score, in hundredths.
const BAND: u32 = 50;
const LOWEST: u32 = 100;
const HIGHEST: u32 = 500;

/// Over the notes of all runs that did not error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewFigures {
    /// Answers with a review, of notes with gold or without.
    pub reviewed: usize,
    pub accepted: Judged,
    pub rejected: Judged,
    /// By the mean of the final scores. Bands without an answer to a note with gold are left out.
    pub by_mean: Vec<Band>,
    /// By the lowest final score, as the turn's line has it.
    pub by_minimum: Vec<Band>,
    pub after_rejection: Changes,
    /// In the order of a review's fields.
    pub agreement: Vec<CriterionAgreement>,
}

/// Answers to notes with gold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    pub n: usize,
    /// Those that are right about whether there is an error.
    pub n_flag_right: usize,
    /// Those that name the gold sentence, or are right that there is no error.
    pub n_sentence_right: usize,
}

/// The answers whose score is at least `low` and below `high`; the last band has 5 too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    pub low: f64,
    pub high: f64,
    pub answers: Judged,
}

/// What the next answer of a note changes of a rejected one, a reflexion lying between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Rejected answers that another answer follows.
    pub n: usize,
    /// The two differ in whether there is an error.
    pub n_verdict: usize,
    /// Both name an error, in different sentences.
    pub n_sentence: usize,
    /// Of notes with gold: the sentence was wrong and is right.
    pub n_righted: usize,
    /// The sentence was right and is wrong.
    pub n_spoiled: usize,
}

/// How far the scores that two reviewers of one answer give for a criterion lie apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriterionAgreement {
    pub criterion: String,
    /// Pairs of reviews of the same answer that both score the criterion.
    pub pairs: usize,
    /// The mean absolute difference in points; `null` without pairs.
    pub distance: Option<f64>,
    /// The share of pairs with equal scores.
    pub equal: Option<f64>,
}

/// An answer with its reviews.
struct Reviewed<'a> {
    turn: &'a TurnLine,
    answer: Answer,
    /// `None` where the note has no gold.
    verdict: Option<Verdict>,
    /// The scores of the reviews that were read, in hundredths, in the order of [`CRITERIA`].
    scores: Vec<Vec<Option<u64>>>,
}

#[derive(Clone, Copy)]
struct Verdict {
    is_flag_right: bool,
    is_sentence_right: bool,
}

impl Verdict {
    fn of(answer: &Answer, gold: &GoldLine) -> Verdict {
        let is_flag_right = answer.is_error == Some(gold.flag);
        let is_sentence_right = is_flag_right && answer.sentence_id == gold.sentence_id;
        Verdict { is_flag_right, is_sentence_right }
    }
}

impl ReviewFigures {
    /// `None` without a review that was read.
    pub fn of<'a>(contents: &'a Contents) -> Option<ReviewFigures> {
        let mut calls: HashMap<(u32, &str), Vec<&CallLine>> = HashMap::new();
        for call in contents.calls.by_key().into_values() {
            calls.entry((call.run, &call.item)).or_default().push(call);
        }
        let of_note = |line: &'a NoteLine| {
            let calls = calls.get(&(line.run, &*line.item)).map_or(&[][..], Vec::as_slice);
            match contents.texts.get(&line.item) {
                Some(ItemText::Note(text)) => reviewed(line, text, calls),
                _ => Vec::new(),
            }
        };
        let notes = contents.notes();
        let by_note: Vec<Vec<Reviewed<'_>>> = notes.into_values().map(of_note).collect();
        let all: Vec<&Reviewed<'_>> = by_note.iter().flatten().collect();
        let judged = |is_accepted: bool| {
            Judged::of(all.iter().copied().filter(|one| one.turn.accepted == is_accepted))
        };
        (!all.is_empty()).then(|| ReviewFigures {
            reviewed: all.len(),
            accepted: judged(true),
            rejected: judged(false),
            by_mean: bands(&all, |turn| turn.mean_hundredths),
            by_minimum: bands(&all, |turn| turn.min),
            after_rejection: changes(&by_note),
            agreement: CRITERIA
                .iter()
                .enumerate()
                .map(|(place, name)| agreement(&all, place, name))
                .collect(),
        })
    }
}

/// The reviewed answers of a note, in the order of its turns.
fn reviewed<'a>(line: &'a NoteLine, text: &NoteText, calls: &[&CallLine]) -> Vec<Reviewed<'a>> {
    let note = Note {
        id: text.item.clone(),
        text: text.text.clone(),
        sentences: text.sentences.clone(),
        language: text.language,
        gold: None,
    };
    let of_turn = |turn: &'a TurnLine| {
        let last = calls_of(turn, "step", calls.iter().copied()).pop()?;
        let action = Action::deserialize(last.record.action()).ok()?;
        let answer = answer::of_action(&action, &note)?;
        let reviews = calls_of(turn, "review", calls.iter().copied());
        let reviews = reviews.into_iter().map(|review| review.record.scores());
        Some(Reviewed {
            verdict: line.gold.as_ref().map(|gold| Verdict::of(&answer, gold)),
            scores: reviews.filter(|scores| scores.last().is_some_and(Option::is_some)).collect(),
            turn,
            answer,
        })
    };
    let turns = line.search.iter().flat_map(|search| &search.turns);
    turns.filter(|turn| turn.is_final && !turn.scores.is_empty()).filter_map(of_turn).collect()
}

impl Judged {
    fn of<'a, 'b: 'a>(answers: impl Iterator<Item = &'a Reviewed<'b>>) -> Judged {
        let mut judged = Judged::default();
        for verdict in answers.filter_map(|one| one.verdict) {
            judged.n += 1;
            judged.n_flag_right += usize::from(verdict.is_flag_right);
            judged.n_sentence_right += usize::from(verdict.is_sentence_right);
        }
        judged
    }
}

fn bands(all: &[&Reviewed<'_>], score: fn(&TurnLine) -> Option<u32>) -> Vec<Band> {
    let mut by_band: BTreeMap<u32, Vec<&Reviewed<'_>>> = BTreeMap::new();
    for one in all {
        if let Some(score) = score(one.turn) {
            let score = score.clamp(LOWEST, HIGHEST - 1);
            by_band.entry((score - LOWEST) / BAND).or_default().push(*one);
        }
    }
    let edge = |number: u32| f64::from(LOWEST + number * BAND) / 100.0;
    let band = |(number, answers): (u32, Vec<&Reviewed<'_>>)| Band {
        low: edge(number),
        high: edge(number + 1),
        answers: Judged::of(answers.into_iter()),
    };
    by_band.into_iter().map(band).filter(|band| band.answers.n > 0).collect()
}

fn changes(by_note: &[Vec<Reviewed<'_>>]) -> Changes {
    let mut changes = Changes::default();
    for pair in by_note.iter().flat_map(|answers| answers.windows(2)) {
        let [before, after] = pair else { continue };
        let (old, new) = (&before.answer, &after.answer);
        let is_verdict = old.is_error != new.is_error;
        changes.n += 1;
        changes.n_verdict += usize::from(is_verdict);
        changes.n_sentence += usize::from(!is_verdict && old.sentence_id != new.sentence_id);
        if let (Some(before), Some(after)) = (before.verdict, after.verdict) {
            let (was, is) = (before.is_sentence_right, after.is_sentence_right);
            changes.n_righted += usize::from(!was && is);
            changes.n_spoiled += usize::from(was && !is);
        }
    }
    changes
}

fn agreement(all: &[&Reviewed<'_>], place: usize, criterion: &str) -> CriterionAgreement {
    let (mut pairs, mut equal, mut apart) = (0_usize, 0_usize, 0_u64);
    for one in all {
        let scores = one.scores.iter().filter_map(|scores| *scores.get(place)?);
        let scores: Vec<u64> = scores.collect();
        for (number, first) in scores.iter().enumerate() {
            for second in &scores[number + 1..] {
                pairs += 1;
                equal += usize::from(first == second);
                apart += first.abs_diff(*second);
            }
        }
    }
    let mean = |sum: f64| (pairs > 0).then(|| sum / pairs as f64);
    CriterionAgreement {
        criterion: criterion.to_owned(),
        pairs,
        distance: mean(apart as f64).map(|hundredths| hundredths / 100.0),
        equal: mean(equal as f64),
    }
}
