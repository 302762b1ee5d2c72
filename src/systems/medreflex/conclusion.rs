//! The log line of a note from its answer: flag, sentence, correction, and the passages that support it.

use super::evidence::{leaks, missing, new_words};
use super::protocol::{Outcome, Work};
use super::step::Action;
use super::texts::HistoryStep;
use crate::prompts::label;
use crate::record::{DetectionLine, EvidenceLine, Flag, LocalisationLine, NoteLine, SettledBy};

impl Work<'_> {
    pub(super) fn conclude(self, outcome: Outcome) -> NoteLine {
        let Work { system, case, mut trajectory, searched, .. } = self;
        let (note, mut line) = (case.item, case.open());
        let Outcome { answer, basis, turn } = outcome;
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
            let history = turn.iter().flat_map(|turn| &turn.history);
            let named = turn.as_ref().and_then(|turn| turn.action.as_ref());
            (trajectory.evidence, trajectory.unknown_labels) =
                evidence(named, &history.collect::<Vec<_>>(), id);
        }
        line.search = Some(trajectory);
        line.calls = case.calls();
        line
    }
}

/// The passages that an answer cites for a sentence, each once, and the number of cited labels that no passage has.
fn evidence(
    action: Option<&Action>,
    history: &[&HistoryStep],
    sentence: usize,
) -> (Vec<EvidenceLine>, u32) {
    let Some(Action::FinalMistake { evidence, .. }) = action else { return (Vec::new(), 0) };
    let (mut lines, mut unknown) = (Vec::new(), 0);
    for wanted in evidence {
        let mut searches = history.iter().filter_map(|kept| kept.found.as_ref());
        let line = searches.find_map(|found| {
            let mut ranks = 1..=found.shown.len();
            let rank = ranks.find(|rank| label(found.step, *rank) == *wanted)?;
            Some(EvidenceLine {
                round: found.round,
                step: found.step,
                rank: rank as u32,
                chunk: found.shown[rank - 1].chunk.clone(),
                sentence,
            })
        });
        match line {
            Some(line) if lines.contains(&line) => {}
            Some(line) => lines.push(line),
            None => unknown += 1,
        }
    }
    (lines, unknown)
}
