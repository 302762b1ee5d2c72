//! A prompt with exemplars: in one block of its user message, or as turns of the conversation before it.

use super::reply::Form;
use super::{Choice, Exemplar, Exemplars};
use crate::data::Note;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Message;
use crate::systems::messages::{messages, numbered};
use crate::text::{Opcode, SequenceMatcher};

/// Where the texts of exemplars' reasons lie.
const REASONS: &str = "mediqa_corr/reason";

/// Templates of one question about a note.
pub struct Prompt {
    system: String,
    user: String,
    /// An exemplar's block; where there is none, exemplars are turns.
    example: Option<String>,
    pub form: &'static Form,
    reasons: Reasons,
}

/// What is said of an exemplar that came without a reason.
struct Reasons {
    wrong: String,
    right: String,
}

/// An exemplar as it is shown.
pub struct Shot<'a> {
    pub exemplar: &'a Exemplar,
    /// What fills the user template beside the note, where exemplars are turns.
    pub more: Vec<(&'static str, String)>,
}

impl Prompt {
    /// `NAME-system.txt` and `NAME-user.txt` under `mediqa_corr/`; exemplars are as `EXAMPLE-example.txt`, without one they are turns.
    ///
    /// # Errors
    /// A prompt that is missing or lost what is filled in.
    pub fn new(
        prompts: &PromptSet,
        name: &str,
        example: Option<&str>,
        form: &'static Form,
    ) -> Result<Prompt, PromptError> {
        let name = format!("mediqa_corr/{name}");
        let user = prompts.get(&format!("{name}-user"), &["note"])?;
        let example = example.map(|name| prompts.get(&format!("mediqa_corr/{name}-example"), &[]));
        let reasons = Reasons {
            wrong: prompts.get(&format!("{REASONS}-wrong"), &["old", "new"])?,
            right: prompts.get(&format!("{REASONS}-right"), &[])?,
        };
        let system = prompts.get(&format!("{name}-system"), &[])?;
        Ok(Prompt { system, user, example: example.transpose()?, form, reasons })
    }

    /// What a model is sent about a note.
    pub fn messages(&self, shots: &[Shot<'_>], note: &Note, more: &[(&str, &str)]) -> Vec<Message> {
        let sentences = numbered(note);
        let own = [&[("note", sentences.as_str()), ("text", &note.text)], more].concat();
        let system = fill(&self.system, &own);
        match &self.example {
            Some(example) => {
                let blocks = (1..).zip(shots).map(|(number, shot)| {
                    let number: i32 = number;
                    let (note, reason) =
                        (numbered(&shot.exemplar.note), self.reason(shot.exemplar));
                    let answer = self.form.of_gold(shot.exemplar, &reason);
                    let values = [
                        ("number", number.to_string()),
                        ("note", note),
                        ("reason", reason),
                        ("verdict", verdict(shot.exemplar).to_owned()),
                        ("answer", answer),
                        ("wrong", pair(shot.exemplar).0),
                        ("right", pair(shot.exemplar).1),
                    ];
                    fill(example, &values)
                });
                let examples = blocks.collect::<Vec<_>>().join("\n\n");
                let reasons = self.reasons(shots);
                let shown = [("examples", examples.as_str()), ("reasons", &reasons)];
                messages(&system, fill(&self.user, &[&shown[..], &own].concat()))
            }
            None => {
                let mut turns = messages(&system, String::new());
                // The system's alone.
                turns.pop();
                for shot in shots {
                    let note = numbered(&shot.exemplar.note);
                    let own = shot.more.iter().map(|(name, value)| (*name, value.as_str()));
                    let values: Vec<(&str, &str)> =
                        [("note", note.as_str())].into_iter().chain(own).collect();
                    turns.extend(messages("", fill(&self.user, &values)));
                    let answer = self.form.of_gold(shot.exemplar, &self.reason(shot.exemplar));
                    turns.push(Message::new("assistant", answer));
                }
                turns.extend(messages("", fill(&self.user, &own)));
                turns
            }
        }
    }

    /// The reasons of all exemplars, a line each, for prompts that show them after all examples.
    fn reasons(&self, shots: &[Shot<'_>]) -> String {
        let lines = (1..).zip(shots).map(|(number, shot)| {
            let number: i32 = number;
            let (verdict, reason) = (verdict(shot.exemplar), self.reason(shot.exemplar));
            format!("Example {number} {verdict} because: {reason}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The exemplar's reason; without one, what its gold says.
    fn reason(&self, exemplar: &Exemplar) -> String {
        match (&exemplar.reason, exemplar.error()) {
            (Some(reason), _) => reason.clone(),
            (None, None) => self.reasons.right.clone(),
            (None, Some(error)) => {
                let (old, new) = difference(&error.sentence, &error.correction);
                let kind = error.kind.as_deref().unwrap_or("medical");
                let values = [("kind", kind), ("old", &old), ("new", &new)];
                fill(&self.reasons.wrong, &values)
            }
        }
    }
}

/// The wrong sentence, and as it should be.
fn pair(exemplar: &Exemplar) -> (String, String) {
    let error = exemplar.error();
    error.map_or_else(Default::default, |error| (error.sentence.clone(), error.correction.clone()))
}

fn verdict(exemplar: &Exemplar) -> &'static str {
    match exemplar.error() {
        Some(_) => "contains an error",
        None => "contains no error",
    }
}

/// From the first word in which two sentences differ to the last, of each.
pub fn difference(wrong: &str, right: &str) -> (String, String) {
    let [old, new] = [wrong, right].map(|text| text.split_whitespace().collect::<Vec<_>>());
    let opcodes = SequenceMatcher::new(&new).opcodes(&old);
    let mut changed = opcodes.iter().filter(|opcode| opcode.edit != crate::text::Edit::Equal);
    let Some(first) = changed.next() else { return (wrong.to_owned(), right.to_owned()) };
    let last: &Opcode = changed.next_back().unwrap_or(first);
    let join = |words: &[&str]| words.join(" ");
    (join(&old[first.a.start..last.a.end]), join(&new[first.b.start..last.b.end]))
}

impl Exemplars {
    /// The chosen exemplars as they are shown.
    ///
    /// # Errors
    /// A text that cannot be encoded.
    pub fn shots(&self, note: &Note, choice: &Choice) -> Result<Vec<Shot<'_>>, PanelError> {
        let chosen = self.choose(note, choice)?.into_iter();
        let shot = |place: usize| Shot { exemplar: &self.pool.exemplars[place], more: Vec::new() };
        Ok(chosen.map(shot).collect())
    }
}
