//! What reads texts of notes and questions, for `crate::linear`.

use std::path::Path;

use serde_json::json;

use super::{error, json, running_text, script, sentences};
use crate::linear;

#[test]
fn what_reads_a_note_takes_time_in_proportion_to_it() {
    linear::check(&[
        ("data::note", &|text| linear::keep(super::note(Path::new("a"), text.into()))),
        ("data::question", &|text| {
            let question = json!({"question": text, "options": [text, "b"]});
            linear::keep(super::question(&question));
        }),
        ("error::shortened", &|text| linear::keep(error::shortened(text))),
        ("error::quoted", &|text| linear::keep(error::quoted(text))),
        ("json::parse", &|text| linear::keep(json::parse(text))),
        ("running_text::split", &|text| linear::keep(running_text::split(text))),
        ("running_text::one_line", &|text| linear::keep(running_text::one_line(text))),
        ("script::language", &|text| linear::keep(script::language(text))),
        ("sentences::numbered", &|text| linear::keep(sentences::numbered(text, text))),
        ("sentences::numbered, alone", &|text| linear::keep(sentences::numbered(text, ""))),
        ("sentences::numbered_or", &|text| {
            linear::keep(sentences::numbered_or(text, running_text::split));
        }),
        ("sentences::numbered_or, numbered", &|text| {
            let text = format!("0 {text} 1 {text}");
            linear::keep(sentences::numbered_or(&text, running_text::split));
        }),
        ("sentences::lines", &|text| linear::keep(sentences::lines(text))),
    ]);
}
