//! What a note can be filtered by.

use serde::Serialize;

use crate::analysis::notes::verdict;
use crate::record::{CallLine, NoteLine, Parse, Source};

/// A property of a finished note that a reader looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// Whether there is an error, is said wrongly.
    Wrong,
    Right,
    MissedError,
    FalseAlarm,
    /// The error was found, and another sentence named, or none.
    WrongSentence,
    /// A third agent settled a stage, by arbitration or by its vote.
    Arbitrated,
    /// What an agent was asked for could not be read from its text.
    Unreadable,
    Error,
}

impl Flag {
    pub const ALL: [Flag; 8] = [
        Flag::Wrong,
        Flag::Right,
        Flag::MissedError,
        Flag::FalseAlarm,
        Flag::WrongSentence,
        Flag::Arbitrated,
        Flag::Unreadable,
        Flag::Error,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Flag::Wrong => "wrong",
            Flag::Right => "right",
            Flag::MissedError => "missed errors",
            Flag::FalseAlarm => "false alarms",
            Flag::WrongSentence => "wrong sentence",
            Flag::Arbitrated => "arbitrated",
            Flag::Unreadable => "unreadable",
            Flag::Error => "errored",
        }
    }

    /// Every flag of a note, in the order of [`Flag::ALL`]. A note that errored counts as wrong where there is gold; that is no
    /// missed error.
    pub fn of(note: &NoteLine, calls: &[&CallLine]) -> Vec<Flag> {
        let verdict = verdict(note);
        let gold = note.gold.as_ref();
        let has_error = gold.map(|gold| gold.flag);
        let said = note.flag.filter(|_| note.error.is_none());
        let found = has_error == Some(true) && said == Some(true);
        let sources = [
            note.detection.as_ref().map(|stage| stage.source),
            note.localisation.as_ref().map(|stage| stage.source),
        ];
        let by_third = |source: Source| matches!(source, Source::Arbitration | Source::Vote);
        let unread = calls.iter().any(|call| call.parse == Parse::Fallback);
        let is = |flag: &Flag| match flag {
            Flag::Wrong => gold.is_some() && !verdict.is_detected,
            Flag::Right => gold.is_some() && verdict.is_detected,
            Flag::MissedError => has_error == Some(true) && said == Some(false),
            Flag::FalseAlarm => has_error == Some(false) && said == Some(true),
            Flag::WrongSentence => found && !verdict.is_located,
            Flag::Arbitrated => sources.into_iter().flatten().any(by_third),
            Flag::Unreadable => unread || note.flag.is_none() && note.error.is_none(),
            Flag::Error => note.error.is_some(),
        };
        Flag::ALL.into_iter().filter(is).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::notes::fixtures::{called, detected, gold, located, note};

    fn flags(note: &NoteLine) -> Vec<Flag> {
        Flag::of(note, &[])
    }

    #[test]
    fn a_flag_is_right_missed_or_a_false_alarm() {
        let judged = |has_error: bool, said: Option<bool>| {
            let mut note = note("x");
            note.gold = Some(gold(has_error.then_some(1)));
            note.flag = said;
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
        found.flag = Some(true);
        found.sentence_id = Some(0);
        assert_eq!(flags(&found), [Flag::Right, Flag::WrongSentence]);
        found.sentence_id = None;
        assert_eq!(flags(&found), [Flag::Right, Flag::WrongSentence]);
    }

    #[test]
    fn a_third_agent_in_either_stage_arbitrates() {
        let mut settled = note("x");
        settled.flag = Some(true);
        for (first, second, is_arbitrated) in [
            (Source::Agreement, Source::Single, false),
            (Source::Arbitration, Source::Agreement, true),
            (Source::Agreement, Source::Vote, true),
        ] {
            settled.detection = Some(detected(first, &[Some(true), Some(true)]));
            settled.localisation = Some(located(second, &[Some(1), Some(1)]));
            assert_eq!(flags(&settled).contains(&Flag::Arbitrated), is_arbitrated);
        }
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
        said.flag = Some(false);
        let mut call = called("x", "det2", "detection");
        assert_eq!(Flag::of(&said, &[&call]), []);
        call.parse = Parse::Fallback;
        assert_eq!(Flag::of(&said, &[&call]), [Flag::Unreadable]);
    }
}
