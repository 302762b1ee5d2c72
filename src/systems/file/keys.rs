//! Which keys of a file have an effect beside the others. A key that has none is refused with what it needs.

use super::fault::Fault;
use super::schema::{BY, Gives, ReplyKind, Stage, SystemFile, Text, Vote, When};
use crate::data::ItemKind;
use crate::outside;

/// A key of a stage, whether it has an effect there, and what it needs to have one. Keys that are not listed always have.
type Key = (&'static str, fn(&SystemFile, &Stage) -> bool, &'static str);

const KEYS: [Key; 10] = [
    ("agents", |_, stage| !stage.agents.is_empty(), "an agent: without the key all are asked"),
    ("from", |_, stage| stage.is_from_before(), "rounds = 2 or more, and a stage before this one"),
    ("tries", |file, stage| file.may_differ(stage), "a temperature above 0"),
    ("shots", |_, stage| stage.shows(), "exemplars or nearest"),
    ("example", |_, stage| stage.shows(), "exemplars or nearest"),
    ("drawn_from", |_, stage| stage.exemplars.is_some(), "exemplars"),
    ("passages", |_, stage| stage.search.is_some(), "search"),
    ("most", |_, stage| stage.reply == ReplyKind::Words, "reply = \"words\""),
    ("style", |file, stage| file.has_form(stage), "notes, and reply = \"fields\""),
    (
        "vote",
        |file, stage| file.votes(stage),
        "replies that answer; of questions majority or confidence, of notes majority or apart",
    ),
];

/// The same of `gives`, by what a stage replies.
const GIVES: &str = "notes, reply = \"fields\" or \"medec\", and for a veto search besides";

/// A setting that a file lists, and whether a stage uses it.
type Setting = (&'static str, fn(&SystemFile) -> bool, &'static str);

const SETTINGS: [Setting; 5] = [
    ("shots", |file| file.any(|stage| stage.shows() && stage.shots.is_none()), "exemplars"),
    ("choice", |file| file.any(Stage::shows), "exemplars"),
    ("temperatures", |file| file.any(|stage| stage.temperature.is_some()), "temperature"),
    ("evidence", |file| file.any(|stage| stage.search.is_some()), "search"),
    ("candidate", |file| file.any(|stage| stage.nearest), "nearest"),
];

impl Stage {
    fn is_from_before(&self) -> bool {
        self.rounds > 1 && self.from.as_ref() != Some(&self.name)
    }

    /// Whether its replies say of a note whether it has an error.
    fn judges(&self) -> bool {
        matches!(self.reply, ReplyKind::Fields | ReplyKind::Medec)
    }
}

impl SystemFile {
    fn any(&self, is_wanted: impl Fn(&Stage) -> bool) -> bool {
        self.stages.iter().any(is_wanted)
    }

    fn is_note(&self) -> bool {
        self.takes == ItemKind::Notes
    }

    /// Whether a call of a stage may say something else when it is made again.
    fn may_differ(&self, stage: &Stage) -> bool {
        stage.temperature != Some(0.0) || self.settings.contains_key("temperatures")
    }

    /// Whether a stage's fields make a form of a note's answer.
    pub(super) fn has_form(&self, stage: &Stage) -> bool {
        self.is_note() && stage.reply == ReplyKind::Fields
    }

    fn votes(&self, stage: &Stage) -> bool {
        match self.is_note() {
            true => stage.judges() && stage.vote != Vote::Confidence,
            false => stage.answers() && stage.vote != Vote::Apart,
        }
    }

    fn gives(&self, stage: &Stage) -> bool {
        let is_known = stage.gives != Gives::Veto || stage.search.is_some();
        self.is_note() && stage.judges() && is_known
    }

    /// Refuses keys without effect, by how the file is written: a default that is written down has none either.
    ///
    /// # Errors
    /// The first of the stage at this place.
    pub(super) fn refuse_idle_keys(&self, place: usize) -> Result<(), Fault> {
        let stage = &self.stages[place];
        let written: toml::Table = outside::toml(&self.source.text).unwrap_or_default();
        let stages = written.get("stage").and_then(toml::Value::as_array);
        let Some(written) = stages.and_then(|all| all.get(place)?.as_table()) else {
            return Ok(());
        };
        let gives: Key = ("gives", |file, stage| file.gives(stage), GIVES);
        let mut keys = KEYS.into_iter().chain([gives]);
        let idle = keys.find(|(key, acts, _)| written.contains_key(*key) && !acts(self, stage));
        idle.map_or(Ok(()), |(key, _, needs)| Err(without_effect(key, needs)))
    }

    /// Refuses settings that no stage uses.
    ///
    /// # Errors
    /// The first.
    pub(super) fn refuse_idle_settings(&self) -> Result<(), Fault> {
        for (key, value) in &self.settings {
            let known = SETTINGS.iter().find(|(name, ..)| name == key);
            if let Some((_, acts, needs)) = known {
                if !acts(self) {
                    return Err(without_effect(key, &format!("a stage with {needs}")));
                }
            } else if value.is_array() && !self.names(key) {
                let needs = "a stage's `only` or the `by` of a text";
                return Err(without_effect(key, needs));
            }
        }
        Ok(())
    }

    /// Whether something depends on a choice.
    fn names(&self, choice: &str) -> bool {
        let by = |text: &Text| match text {
            Text::By(words) => words.get(BY).is_some_and(|by| by == choice),
            Text::One(_) => false,
        };
        self.texts.values().any(by) || self.any(|stage| stage.only.contains_key(choice))
    }

    /// Refuses a condition that what was said before a stage never changes.
    ///
    /// # Errors
    /// A stage that nobody would ever be asked in, or everybody.
    pub(super) fn refuse_idle_when(&self, stage: &Stage, before: &[&Stage]) -> Result<(), Fault> {
        let has = |is_wanted: fn(&Stage) -> bool| before.iter().any(|one| is_wanted(one));
        let (may_change, needs) = match stage.when {
            When::Always => (true, ""),
            When::Disagree => (has(Stage::answers), "that answers"),
            When::Error | When::NoError | When::Sentence | When::OtherSentence => {
                (has(Stage::judges), "that says whether there is an error")
            }
            When::Suspected => (
                has(|one| one.judges() || one.reply == ReplyKind::Sentence)
                    || self.settings.contains_key("candidate"),
                "with reply = \"sentence\"",
            ),
        };
        match may_change {
            true => Ok(()),
            false => Err(without_effect("when", &format!("a stage before it {needs}"))),
        }
    }
}

fn without_effect(key: &str, needs: &str) -> Fault {
    Fault::new(key, "it has no effect here", format!("it needs {needs}"))
}
