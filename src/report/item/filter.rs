//! What a list of cases can be filtered by.

use serde::Serialize;

use crate::analysis::metrics::agreement::agree;
use crate::analysis::notes::verdict;
use crate::data::ItemKind;
use crate::record::{AnswerLine, CallLine, ItemLine, NoteLine, Parse};

/// A property of a finished item that a reader looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
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

/// A property as a page lists it: the items that can have it, what it is called, and its badge.
pub type Filter = (Property, &'static [ItemKind], &'static str, Badge);

/// Of the badge of a case's row a class of the page's style, which may be empty, and its words; none for what the row shows otherwise.
pub type Badge = [&'static str; 2];

const QUESTIONS: &[ItemKind] = &[ItemKind::Questions];
const NOTES: &[ItemKind] = &[ItemKind::Notes];
const BOTH: &[ItemKind] = &[ItemKind::Questions, ItemKind::Notes];

/// Of every property, in the order in which pages list them.
static FILTERS: [Filter; 11] = [
    (Property::Wrong, BOTH, "wrong", ["", ""]),
    (Property::Right, BOTH, "right", ["", ""]),
    (Property::RightToWrong, QUESTIONS, "flipped right → wrong", ["", ""]),
    (Property::WrongToRight, QUESTIONS, "flipped wrong → right", ["", ""]),
    (Property::Disagreement, QUESTIONS, "disagreement at the end", ["", "split"]),
    (Property::Fallback, BOTH, "read from words", ["caution", "fallback"]),
    (Property::MissedError, NOTES, "missed errors", ["wrong", "missed error"]),
    (Property::FalseAlarm, NOTES, "false alarms", ["wrong", "false alarm"]),
    (Property::WrongSentence, NOTES, "wrong sentence", ["caution", "wrong sentence"]),
    (Property::Unreadable, BOTH, "unreadable or refused", ["caution", "unreadable"]),
    (Property::Error, BOTH, "failed", ["wrong", "failed"]),
];

impl Property {
    /// The filters of a list of such items.
    pub fn filters(kind: ItemKind) -> impl Iterator<Item = &'static Filter> {
        FILTERS.iter().filter(move |(_, kinds, ..)| kinds.contains(&kind))
    }

    pub fn badge(self) -> Option<Badge> {
        let (.., badge) = FILTERS.iter().find(|one| one.0 == self)?;
        Some(*badge).filter(|[_, words]| !words.is_empty())
    }

    /// Every property of an item, in the order of filters.
    pub fn of(item: &ItemLine, calls: &[&CallLine]) -> Vec<Property> {
        FILTERS.iter().map(|one| one.0).filter(|flag| flag.is_of(item, calls)).collect()
    }

    /// An item that failed counts as wrong where there is a gold answer.
    pub fn is_of(self, item: &ItemLine, calls: &[&CallLine]) -> bool {
        let is_read = |ways: &[Parse]| calls.iter().any(|call| ways.contains(&call.parse));
        let is_right = item.correct();
        match (self, item) {
            (Property::Wrong, _) => is_right == Some(false),
            (Property::Right, _) => is_right == Some(true),
            (Property::Error, _) => item.error().is_some(),
            (Property::Fallback, _) => is_read(&[Parse::Fallback]),
            (Property::Unreadable, _) => {
                let is_silent = |note: &NoteLine| !note.flag.is_read() && note.error.is_none();
                is_read(&[Parse::Unread, Parse::Refused]) || item.note().is_some_and(is_silent)
            }
            (Property::RightToWrong, ItemLine::Answer(item)) => {
                is_right_at_first(item) == Some(true) && is_right == Some(false)
            }
            (Property::WrongToRight, ItemLine::Answer(item)) => {
                is_right_at_first(item) == Some(false) && is_right == Some(true)
            }
            // Where nobody could be read, nobody disagrees.
            (Property::Disagreement, ItemLine::Answer(item)) => {
                let mut rounds = item.rounds.iter().map(|round| &round.answers);
                let last = rounds.rfind(|answers| answers.len() > 1);
                last.is_some_and(|last| last.iter().any(|one| !one.is_empty()) && !agree(last))
            }
            (Property::MissedError, ItemLine::Note(note)) => {
                errors(note) == [Some(true), Some(false)]
            }
            (Property::FalseAlarm, ItemLine::Note(note)) => {
                errors(note) == [Some(false), Some(true)]
            }
            (Property::WrongSentence, ItemLine::Note(note)) => {
                errors(note) == [Some(true); 2] && !verdict(note).is_located
            }
            _ => false,
        }
    }
}

/// Whether the vote of round 0 was right; `None` of a question that failed, and without rounds.
pub fn is_right_at_first(item: &AnswerLine) -> Option<bool> {
    let first = item.rounds.first().filter(|_| item.error.is_none())?;
    Some(Some(&first.aggregate) == item.gold.as_ref())
}

/// Whether a note has an error by gold, and by what was said of it.
fn errors(note: &NoteLine) -> [Option<bool>; 2] {
    let gold = note.gold.as_ref().map(|gold| gold.flag);
    [gold, note.flag.said().filter(|_| note.error.is_none())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stage;
    use crate::report::tests::fixtures::{call, item, round};
    use crate::report::tests::notes::{called, gold, note};

    fn flags(note: &NoteLine) -> Vec<Property> {
        Property::of(&note.clone().into(), &[])
    }

    #[test]
    fn an_item_that_debate_turned_is_flagged_both_ways() {
        let turned = |gold: Option<&str>| {
            let rounds = vec![round(0, ["A", "A", "B"]), round(1, ["B", "B", "B"])];
            Property::of(&item("x", gold, rounds, "B").into(), &[])
        };
        assert_eq!(turned(Some("B")), [Property::Right, Property::WrongToRight]);
        assert_eq!(turned(Some("A")), [Property::Wrong, Property::RightToWrong]);
        assert_eq!(turned(Some("C")), [Property::Wrong]);
        assert_eq!(turned(None), []);
    }

    #[test]
    fn a_missing_answer_is_disagreement() {
        let rounds = vec![round(0, ["A", "", "A"])];
        let flags = Property::of(&item("x", Some("A"), rounds, "A").into(), &[]);
        assert_eq!(flags, [Property::Right, Property::Disagreement]);
        let nobody = item("x", Some("A"), vec![round(0, ["", "", ""])], "");
        assert_eq!(Property::of(&nobody.into(), &[]), [Property::Wrong]);
    }

    #[test]
    fn an_error_is_wrong_only_against_a_gold_answer() {
        let mut failed = item("x", Some("A"), Vec::new(), "");
        failed.error = Some("the prompt is too long".into());
        failed.correct = None;
        assert_eq!(Property::of(&failed.clone().into(), &[]), [Property::Wrong, Property::Error]);
        failed.gold = None;
        assert_eq!(Property::of(&failed.into(), &[]), [Property::Error]);
    }

    #[test]
    fn how_a_call_was_read_is_flagged_whatever_the_item() {
        let answered = item("x", None, vec![round(0, ["A", "A", "A"])], "A").into();
        let said = NoteLine { flag: Some(false).into(), ..note("x") }.into();
        let mut one = call("x", "sym", 0);
        for (parse, flag) in [
            (Parse::Fallback, Property::Fallback),
            (Parse::Refused, Property::Unreadable),
            (Parse::Unread, Property::Unreadable),
        ] {
            one.parse = parse;
            assert_eq!(Property::of(&answered, &[&one]), [flag]);
            assert_eq!(Property::of(&said, &[&one]), [flag]);
        }
    }

    #[test]
    fn every_flag_of_an_item_is_shown_once() {
        let names: Vec<Property> = FILTERS.iter().map(|one| one.0).collect();
        assert!((1..names.len()).all(|place| !names[..place].contains(&names[place])));
    }

    #[test]
    fn whoever_decides_alone_ends_no_disagreement() {
        let mut decided = round(1, ["A"]);
        decided.stage = Stage::Final;
        let rounds = vec![round(0, ["A", "B"]), decided];
        let flags = Property::of(&item("x", Some("A"), rounds, "A").into(), &[]);
        assert_eq!(flags, [Property::Right, Property::Disagreement]);
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
        assert_eq!(judged(true, Some(true)), [Property::Right]);
        assert_eq!(judged(true, Some(false)), [Property::Wrong, Property::MissedError]);
        assert_eq!(judged(false, Some(true)), [Property::Wrong, Property::FalseAlarm]);
        assert_eq!(judged(false, Some(false)), [Property::Right]);
        assert_eq!(judged(true, None), [Property::Wrong, Property::Unreadable]);
    }

    #[test]
    fn an_error_that_is_found_elsewhere_is_in_the_wrong_sentence() {
        let mut found = note("x");
        found.gold = Some(gold(Some(1)));
        found.flag = Some(true).into();
        found.sentence_id = Some(0);
        assert_eq!(flags(&found), [Property::Right, Property::WrongSentence]);
        found.sentence_id = None;
        assert_eq!(flags(&found), [Property::Right, Property::WrongSentence]);
    }

    #[test]
    fn a_note_that_errored_is_wrong_only_against_gold() {
        let mut failed = note("x");
        failed.error = Some("the prompt is too long".into());
        assert_eq!(flags(&failed), [Property::Error]);
        failed.gold = Some(gold(None));
        assert_eq!(flags(&failed), [Property::Wrong, Property::Error]);
        failed.gold = Some(gold(Some(1)));
        assert_eq!(flags(&failed), [Property::Wrong, Property::Error]);
    }

    #[test]
    fn one_text_that_cannot_be_read_is_enough() {
        let said = NoteLine { flag: Some(false).into(), ..note("x") }.into();
        let mut call = called("x", "det2", "detection");
        assert_eq!(Property::of(&said, &[&call]), []);
        call.parse = Parse::Fallback;
        assert_eq!(Property::of(&said, &[&call]), [Property::Fallback]);
        call.parse = Parse::Unread;
        assert_eq!(Property::of(&said, &[&call]), [Property::Unreadable]);
    }
}
