//! The log line of a note from its answer: flag, sentence, correction, and how far passages support it.

use super::evidence::{leaks, missing, new_words};
use super::protocol::{Outcome, Work};
use crate::record::{DetectionLine, Flag, LocalisationLine, NoteLine, SettledBy};

impl Work<'_> {
    pub(super) fn conclude(self, outcome: Outcome) -> NoteLine {
        let Work { system, case, mut trajectory, searched, .. } = self;
        let (note, mut line) = (case.item, case.open());
        let Outcome { answer, basis } = outcome;
        line.flag = Flag::on(basis, answer.is_error);
        line.sentence_id = answer.sentence_id;
        line.sentence = line.sentence_id.map(|id| note.sentences[id].clone()).unwrap_or_default();
        line.exact_sentence_id = line.sentence_id;
        line.correction = answer.correction.clone();
        let decided = trajectory.turns.last().filter(|turn| turn.accepted);
        let mean = decided.and_then(|turn| turn.mean_hundredths);
        let agent = if system.reviewing.is_some() { "eval" } else { "parser" };
        line.detection = Some(DetectionLine {
            source: SettledBy::Single,
            agents: vec![agent.to_owned()],
            flags: vec![line.flag.said()],
            confidences: vec![mean.map(|mean| f64::from(mean) / 500.0)],
        });
        if line.flag.has_error() {
            line.localisation = Some(LocalisationLine {
                source: SettledBy::Single,
                agents: vec!["parser".to_owned()],
                opinions: vec![line.sentence_id.map_or(String::new(), |id| id.to_string())],
                sentence_ids: vec![line.sentence_id],
                confidences: vec![None],
            });
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
        line.calls = case.calls();
        line
    }
}
