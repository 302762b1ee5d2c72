//! The exemplars of a prompt (few-shot), in one block of its user message.

use super::schema::StageEntry;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::systems::exemplars::Exemplar;
use crate::systems::messages::numbered;
use crate::text::SequenceMatcher;

/// The reasons of exemplars that came without.
pub struct Reasons {
    /// Of one with an error.
    wrong: String,
    right: String,
}

impl Reasons {
    pub fn new(prompts: &PromptSet) -> Result<Reasons, PromptError> {
        let wrong = prompts.get("mediqa_corr/reason-wrong", &["old", "new"])?;
        Ok(Reasons { wrong, right: prompts.get("mediqa_corr/reason-right", &[])? })
    }

    /// The values by which a prompt quotes exemplars.
    pub fn blocks(&self, stage: &StageEntry, shots: &[&Exemplar]) -> [(&'static str, String); 2] {
        let blocks = (1_u32..).zip(shots).map(|(number, shot)| self.block(stage, number, shot));
        let (blocks, reasons): (Vec<String>, Vec<String>) = blocks.unzip();
        [("examples", blocks.join("\n\n")), ("reasons", reasons.join("\n"))]
    }

    /// An exemplar's block, and its line among the reasons, which some prompts show after all examples.
    fn block(&self, stage: &StageEntry, number: u32, exemplar: &Exemplar) -> (String, String) {
        let reason = self.of(exemplar);
        let error = exemplar.error();
        let verdict = if error.is_some() { "contains an error" } else { "contains no error" };
        let wrong = error.and_then(|error| error.sentence.as_deref());
        let right = error.and_then(|error| error.correction.as_deref());
        let values = [
            ("number", &*number.to_string()),
            ("note", &numbered(&exemplar.note)),
            ("reason", &reason),
            ("verdict", verdict),
            ("answer", &stage.of_gold(exemplar, &reason)),
            ("wrong", wrong.unwrap_or_default()),
            ("right", right.unwrap_or_default()),
        ];
        (fill(&stage.example, &values), format!("Example {number} {verdict} because: {reason}"))
    }

    /// The exemplar's reason; without one, a sentence made of its gold.
    fn of(&self, exemplar: &Exemplar) -> String {
        match (&exemplar.reason, exemplar.error()) {
            (Some(reason), _) => reason.clone(),
            (None, None) => self.right.clone(),
            (None, Some(error)) => {
                let [wrong, right] = [&error.sentence, &error.correction]
                    .map(|text| text.as_deref().unwrap_or_default());
                let (old, new) = difference(wrong, right);
                let kind = error.kind.as_deref().unwrap_or("medical");
                fill(&self.wrong, &[("kind", kind), ("old", &old), ("new", &new)])
            }
        }
    }
}

/// From the first word in which two sentences differ to the last, of each. Where words are only added or left out, with the word before
/// them, or else after.
fn difference(wrong: &str, right: &str) -> (String, String) {
    let [old, new] = [wrong, right].map(|text| text.split_whitespace().collect::<Vec<_>>());
    let opcodes = SequenceMatcher::new(&new).opcodes(&old);
    let mut changed = opcodes.iter().filter(|opcode| !opcode.is_equal);
    let Some(first) = changed.next() else { return (wrong.to_owned(), right.to_owned()) };
    let last = changed.next_back().unwrap_or(first);
    let (mut a, mut b) = (first.a.start..last.a.end, first.b.start..last.b.end);
    if a.is_empty() || b.is_empty() {
        if a.start > 0 {
            (a.start, b.start) = (a.start - 1, b.start - 1);
        } else {
            (a.end, b.end) = ((a.end + 1).min(old.len()), (b.end + 1).min(new.len()));
        }
    }
    (old[a].join(" "), new[b].join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_sentences_is_never_empty_on_one_side() {
        for (wrong, right, old, new) in [
            ("Give aspirin twice.", "Give ibuprofen twice.", "aspirin", "ibuprofen"),
            ("Stop it now.", "Stop it.", "it now.", "it."),
            ("Same.", "Same.", "Same.", "Same."),
            // Words that are only added or only left out come with a word beside them.
            ("There is fever.", "There is no fever.", "is", "is no"),
            ("Not acute asthma.", "acute asthma.", "Not acute", "acute"),
        ] {
            assert_eq!(difference(wrong, right), (old.to_owned(), new.to_owned()));
        }
    }
}
