//! What a list of cases can be filtered by.

use serde::Serialize;

use crate::analysis::metrics::agreement::agree;
use crate::analysis::notes::verdict;
use crate::data::ItemKind;
use crate::record::{AnswerLine, CallLine, ItemLine, NoteLine, Parse};

/// A property of a finished item that a reader looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// The answer, or whether there is an error, is wrong.
    Wrong,
    Right,
    /// Of the vote of round 0 and the final answer.
    RightToWrong,
    WrongToRight,
    /// The answers of the last round in which several answered differ, or one is missing.
    Disagreement,
    /// What a call was asked for was taken from the words of its text.
    Fallback,
    /// The note has an error, and was called correct.
    MissedError,
    /// The note is correct, and was said to have an error.
    FalseAlarm,
    /// The error was detected, and another sentence located, or none.
    WrongSentence,
    /// What an agent was asked for could not be read from its text, or the model declined.
    Unreadable,
    Error,
}

/// A flag as pages show it.
pub struct Shown {
    pub flag: Flag,
    /// The items that can have it.
    kinds: &'static [ItemKind],
    /// In the list of filters.
    pub label: &'static str,
    badge: Badge,
}

/// Of the badge of a case's row a class of the page's style, which may be empty, and its words; none for what the row shows otherwise.
pub type Badge = [&'static str; 2];

const UNREADABLE: &[Parse] = &[Parse::Unread, Parse::Refused];
const QUESTIONS: &[ItemKind] = &[ItemKind::Questions];
const NOTES: &[ItemKind] = &[ItemKind::Notes];
const BOTH: &[ItemKind] = &[ItemKind::Questions, ItemKind::Notes];

const fn shown(flag: Flag, kinds: &'static [ItemKind], label: &'static str, badge: Badge) -> Shown {
    Shown { flag, kinds, label, badge }
}

/// Every flag, in the order in which pages list them.
static FLAGS: [Shown; 11] = [
    shown(Flag::Wrong, BOTH, "wrong", ["", ""]),
    shown(Flag::Right, BOTH, "right", ["", ""]),
    shown(Flag::RightToWrong, QUESTIONS, "flipped right → wrong", ["", ""]),
    shown(Flag::WrongToRight, QUESTIONS, "flipped wrong → right", ["", ""]),
    shown(Flag::Disagreement, QUESTIONS, "disagreement at the end", ["", "split"]),
    shown(Flag::Fallback, BOTH, "read from words", ["caution", "fallback"]),
    shown(Flag::MissedError, NOTES, "missed errors", ["wrong", "missed error"]),
    shown(Flag::FalseAlarm, NOTES, "false alarms", ["wrong", "false alarm"]),
    shown(Flag::WrongSentence, NOTES, "wrong sentence", ["caution", "wrong sentence"]),
    shown(Flag::Unreadable, BOTH, "unreadable or refused", ["caution", "unreadable"]),
    shown(Flag::Error, BOTH, "failed", ["wrong", "failed"]),
];

impl Flag {
    /// The flags that items of a kind can have, in the order in which pages list them.
    pub fn all(kind: ItemKind) -> impl Iterator<Item = &'static Shown> {
        FLAGS.iter().filter(move |one| one.kinds.contains(&kind))
    }

    pub fn badge(self) -> Option<Badge> {
        let shown = FLAGS.iter().find(|one| one.flag == self)?;
        Some(shown.badge).filter(|[_, words]| !words.is_empty())
    }

    /// Every flag of an item, in the order of [`Flag::all`]. An item that failed counts as wrong where there is a gold answer.
    pub fn of(item: &ItemLine, calls: &[&CallLine]) -> Vec<Flag> {
        match item {
            ItemLine::Answer(answer) => Flag::of_answer(answer, calls),
            ItemLine::Note(note) => Flag::of_note(note, calls),
        }
    }

    pub fn of_answer(item: &AnswerLine, calls: &[&CallLine]) -> Vec<Flag> {
        let error = item.error.is_some();
        let right = !error && item.correct == Some(true);
        let wrong = item.gold.is_some() && !right;
        let first = item.rounds.first().filter(|_| !error);
        let at_first = first.map(|round| Some(&round.aggregate) == item.gold.as_ref());
        let last = item.rounds.iter().rfind(|round| round.answers.len() > 1);
        choose(ItemKind::Questions, |flag| match flag {
            Flag::Wrong => wrong,
            Flag::Right => right,
            Flag::RightToWrong => at_first == Some(true) && wrong,
            Flag::WrongToRight => at_first == Some(false) && right,
            // Where nobody could be read, nobody disagrees.
            Flag::Disagreement => last.is_some_and(|round| {
                round.answers.iter().any(|one| !one.is_empty()) && !agree(&round.answers)
            }),
            Flag::Fallback => read(calls, &[Parse::Fallback]),
            Flag::Unreadable => read(calls, UNREADABLE),
            Flag::Error => error,
            _ => false,
        })
    }

    fn of_note(note: &NoteLine, calls: &[&CallLine]) -> Vec<Flag> {
        let verdict = verdict(note);
        let gold = note.gold.as_ref();
        let has_error = gold.map(|gold| gold.flag);
        let said = note.flag.said().filter(|_| note.error.is_none());
        let found = has_error == Some(true) && said == Some(true);
        choose(ItemKind::Notes, |flag| match flag {
            Flag::Wrong => gold.is_some() && !verdict.is_detected,
            Flag::Right => gold.is_some() && verdict.is_detected,
            Flag::MissedError => has_error == Some(true) && said == Some(false),
            Flag::FalseAlarm => has_error == Some(false) && said == Some(true),
            Flag::WrongSentence => found && !verdict.is_located,
            Flag::Fallback => read(calls, &[Parse::Fallback]),
            Flag::Unreadable => {
                read(calls, UNREADABLE) || !note.flag.is_read() && note.error.is_none()
            }
            Flag::Error => note.error.is_some(),
            _ => false,
        })
    }
}

fn choose(kind: ItemKind, is: impl Fn(&Flag) -> bool) -> Vec<Flag> {
    Flag::all(kind).map(|one| one.flag).filter(is).collect()
}

/// Whether a call was read in one of these ways.
fn read(calls: &[&CallLine], ways: &[Parse]) -> bool {
    calls.iter().any(|call| ways.contains(&call.parse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stage;
    use crate::report::tests::fixtures::{call, item, round};
    use crate::report::tests::notes::{called, gold, note};

    fn flags(note: &NoteLine) -> Vec<Flag> {
        Flag::of_note(note, &[])
    }

    #[test]
    fn an_item_that_debate_turned_is_flagged_both_ways() {
        let turned = |gold: Option<&str>| {
            let rounds = vec![round(0, ["A", "A", "B"]), round(1, ["B", "B", "B"])];
            Flag::of_answer(&item("x", gold, rounds, "B"), &[])
        };
        assert_eq!(turned(Some("B")), [Flag::Right, Flag::WrongToRight]);
        assert_eq!(turned(Some("A")), [Flag::Wrong, Flag::RightToWrong]);
        assert_eq!(turned(Some("C")), [Flag::Wrong]);
        assert_eq!(turned(None), []);
    }

    #[test]
    fn a_missing_answer_is_disagreement() {
        let rounds = vec![round(0, ["A", "", "A"])];
        let flags = Flag::of_answer(&item("x", Some("A"), rounds, "A"), &[]);
        assert_eq!(flags, [Flag::Right, Flag::Disagreement]);
        let nobody = item("x", Some("A"), vec![round(0, ["", "", ""])], "");
        assert_eq!(Flag::of_answer(&nobody, &[]), [Flag::Wrong]);
    }

    #[test]
    fn an_error_is_wrong_only_against_a_gold_answer() {
        let mut failed = item("x", Some("A"), Vec::new(), "");
        failed.error = Some("the prompt is too long".into());
        failed.correct = None;
        assert_eq!(Flag::of_answer(&failed, &[]), [Flag::Wrong, Flag::Error]);
        failed.gold = None;
        assert_eq!(Flag::of_answer(&failed, &[]), [Flag::Error]);
    }

    #[test]
    fn how_a_call_was_read_is_flagged_whatever_the_item() {
        let answered = item("x", None, vec![round(0, ["A", "A", "A"])], "A");
        let mut said = note("x");
        said.flag = Some(false).into();
        let mut one = call("x", "sym", 0);
        for (parse, flag) in [
            (Parse::Fallback, Flag::Fallback),
            (Parse::Refused, Flag::Unreadable),
            (Parse::Unread, Flag::Unreadable),
        ] {
            one.parse = parse;
            assert_eq!(Flag::of_answer(&answered, &[&one]), [flag]);
            assert_eq!(Flag::of_note(&said, &[&one]), [flag]);
        }
    }

    #[test]
    fn every_flag_of_an_item_is_shown_once() {
        let names: Vec<Flag> = FLAGS.iter().map(|one| one.flag).collect();
        assert!((1..names.len()).all(|place| !names[..place].contains(&names[place])));
    }

    #[test]
    fn whoever_decides_alone_ends_no_disagreement() {
        let mut decided = round(1, ["A"]);
        decided.stage = Stage::Final;
        let rounds = vec![round(0, ["A", "B"]), decided];
        let flags = Flag::of_answer(&item("x", Some("A"), rounds, "A"), &[]);
        assert_eq!(flags, [Flag::Right, Flag::Disagreement]);
    }

    #[test]
    fn a_flag_is_right_missed_or_a_false_alarm() {
        let judged = |has_error: bool, said: Option<bool>| {
            let mut note = note("x");
            note.gold = Some(gold(has_error.then_some(1)));
            note.flag = said.into();
            note.sentence_id = said.filter(|said| *said).map(|_| 1);
            flags(&note)
        };
        assert_eq!(judged(true, Some(true)), [Flag::Right]);
        assert_eq!(judged(true, Some(false)), [Flag::Wrong, Flag::MissedError]);
        assert_eq!(judged(false, Some(true)), [Flag::Wrong, Flag::FalseAlarm]);
        assert_eq!(judged(false, Some(false)), [Flag::Right]);
        assert_eq!(judged(true, None), [Flag::Wrong, Flag::Unreadable]);
    }

    #[test]
    fn an_error_that_is_found_elsewhere_is_in_the_wrong_sentence() {
        let mut found = note("x");
        found.gold = Some(gold(Some(1)));
        found.flag = Some(true).into();
        found.sentence_id = Some(0);
        assert_eq!(flags(&found), [Flag::Right, Flag::WrongSentence]);
        found.sentence_id = None;
        assert_eq!(flags(&found), [Flag::Right, Flag::WrongSentence]);
    }

    #[test]
    fn a_note_that_errored_is_wrong_only_against_gold() {
        let mut failed = note("x");
        failed.error = Some("the prompt is too long".into());
        assert_eq!(flags(&failed), [Flag::Error]);
        failed.gold = Some(gold(None));
        assert_eq!(flags(&failed), [Flag::Wrong, Flag::Error]);
        failed.gold = Some(gold(Some(1)));
        assert_eq!(flags(&failed), [Flag::Wrong, Flag::Error]);
    }

    #[test]
    fn one_text_that_cannot_be_read_is_enough() {
        let mut said = note("x");
        said.flag = Some(false).into();
        let mut call = called("x", "det2", "detection");
        assert_eq!(Flag::of_note(&said, &[&call]), []);
        call.parse = Parse::Fallback;
        assert_eq!(Flag::of_note(&said, &[&call]), [Flag::Fallback]);
        call.parse = Parse::Unread;
        assert_eq!(Flag::of_note(&said, &[&call]), [Flag::Unreadable]);
    }
}
