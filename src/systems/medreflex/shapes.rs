//! The grammars of the agents' replies: a step whose sentence is one of the note's, a review, the parser's answer.

use itertools::Itertools;
use serde_json::{Value, json};

use super::review::CRITERIA;
use crate::data::Note;
use crate::record::Grammar;
use crate::systems::decoding::Decoding;
use crate::systems::form;

const QUERY_CHARS: usize = 200;

pub fn step(decoding: &Decoding, note: &Note) -> Grammar {
    let name = |name: &str| json!({"const": name});
    let sentences: Vec<&str> = note.sentences.iter().map(String::as_str).unique().collect();
    let actions = [
        form::object(vec![("name", name("search")), ("query", form::string(QUERY_CHARS))]),
        form::object(vec![
            ("name", name("final_mistake")),
            ("sentence", form::choice(&sentences)),
            ("correction", form::string(decoding.sentence_chars(note))),
        ]),
        form::object(vec![
            ("name", name("final_mistake")),
            ("sentence", name("NA")),
            ("correction", name("NA")),
        ]),
    ];
    form::record(vec![
        ("observation", decoding.string()),
        ("thought", decoding.string()),
        ("action", json!({ "anyOf": actions })),
    ])
}

/// A review: a reason and a score for each criterion.
pub fn review(decoding: &Decoding) -> Grammar {
    let keys: Vec<[String; 2]> = CRITERIA
        .iter()
        .map(|name| [format!("{name}_reasoning"), format!("{name}_score")])
        .collect();
    let fields = keys.iter().flat_map(|[reasoning, score]| {
        [
            (reasoning.as_str(), decoding.string()),
            (score.as_str(), json!({"enum": [1, 2, 3, 4, 5]})),
        ]
    });
    form::record(fields.collect())
}

/// The parser's answer: that there is no error, or one of the note's sentences by its id and its text.
pub fn answer(decoding: &Decoding, note: &Note) -> Grammar {
    let one = |is_error: bool, id: i64, sentence: &str, corrected: Value| {
        form::object(vec![
            ("reasoning", decoding.string()),
            ("is_error", json!({ "const": is_error })),
            ("sentence_id", json!({ "const": id })),
            ("error_sentence", json!({ "const": sentence })),
            ("corrected_sentence", corrected),
        ])
    };
    let chars = decoding.sentence_chars(note);
    let sentences = note.sentences.iter().zip(0..);
    let wrong = sentences.map(|(text, id)| one(true, id, text, form::string(chars)));
    let all: Vec<Value> =
        [one(false, -1, "NA", json!({"const": "NA"}))].into_iter().chain(wrong).collect();
    // Its place in the schema is part of the request.
    let schema = form::spaced(json!({ "x-guidance": null, "anyOf": all }));
    Grammar::JsonSchema(schema.to_string())
}
