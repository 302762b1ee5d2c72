//! What a line says of a case without a word of the note's or the agents'.

use serde_json::{Value, json};

use crate::record::ItemLine;

/// What an outcome says without a text; the item's id stays out too.
pub fn without_text(line: &ItemLine) -> Value {
    match line {
        ItemLine::Answer(line) => json!({
            "kind": "question", "answer": line.answer, "team_confidence": line.team_confidence,
            "rounds_run": line.rounds_run, "calls": line.calls, "tie": line.tie,
        }),
        ItemLine::Note(line) => json!({
            "kind": "note", "flag": line.flag, "sentence_id": line.sentence_id,
            "confidence": line.confidence, "calls": line.calls,
            "votes": line.detection.as_ref().map(|detection| &detection.flags),
            "located": line.localisation.as_ref().map(|localisation| &localisation.sentence_ids),
        }),
    }
}
