//! The log line of a note from its answer: flag, sentence, correction, and how far passages support it.

use super::evidence::{leaks, missing, new_words};
use super::protocol::{Outcome, Work};
use crate::record::{Flag, NoteLine};
use crate::systems::opinion::{Opinion, Settled, note_line};

impl Work<'_> {
    pub(super) fn conclude(self, (answer, basis): Outcome) -> NoteLine {
        let Work { system, case, mut trajectory, searched, .. } = self;
        let note = case.item;
        let opinion = Opinion {
            flag: Flag::on(basis, answer.is_error),
            sentence_id: answer.sentence_id,
            correction: answer.correction.clone(),
        };
        let heard = vec![("parser".to_owned(), opinion.clone())];
        let mut line = note_line(&case, Settled { opinion, heard });
        if let (Some(detection), Some(_)) = (&mut line.detection, &system.reviewing) {
            let decided = trajectory.turns.last().filter(|turn| turn.accepted);
            let mean = decided.and_then(|turn| turn.mean_hundredths);
            detection.agents = vec!["eval".to_owned()];
            detection.confidences = vec![mean.map(|mean| f64::from(mean) / 500.0)];
        }
        trajectory.mismatch = answer.mismatch;
        trajectory.unchanged = answer.unchanged;
        trajectory.leaks = leaks(&note.text, &searched);
        if let (Some(correction), Some(id)) = (&answer.correction, answer.sentence_id) {
            let new = new_words(&note.sentences[id], correction);
            let lacking = missing(&new, &searched);
            trajectory.grounded = (!new.is_empty()).then_some(lacking.is_empty());
            trajectory.ungrounded = lacking;
        }
        line.search = Some(trajectory);
        line
    }
}
