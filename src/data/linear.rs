//! What reads texts of notes and questions, for `crate::linear`.

use std::path::Path;

use super::row_reader::RowReader;
use super::{cross_reference, error, json, medec, running_text, script, sentences};
use crate::linear::{self, keep};

#[test]
fn what_reads_a_note_takes_time_in_proportion_to_it() {
    linear::check(&[
        ("data::note", &|text| keep(super::note(Path::new("a"), text.into()))),
        ("item::new", &|text| keep(super::Note::new(String::new(), text))),
        ("cross_reference::speaks_of_others", &|text| {
            keep(cross_reference::speaks_of_others(text));
        }),
        ("error::shortened", &|text| keep(error::shortened(text))),
        ("json::parse", &|text| keep(json::parse(text))),
        ("json::read", &|text| keep(json::read::<serde_json::Value>(text.as_bytes()))),
        ("row_reader::all, JSON Lines", &|text| {
            keep(RowReader::json_lines(Path::new("a"), text.as_bytes()).all().is_ok());
        }),
        ("row_reader::table", &|text| {
            let table = RowReader::table(Path::new("a"), text.as_bytes(), None);
            keep(table.and_then(RowReader::all).is_ok());
        }),
        ("medec::bare", &|text| keep(medec::bare(text))),
        ("running_text::split", &|text| keep(running_text::split(text))),
        ("running_text::one_line", &|text| keep(running_text::one_line(text))),
        ("script::language", &|text| keep(script::language(text))),
        ("sentences::numbered", &|text| keep(sentences::numbered(text, text))),
        ("sentences::numbered, alone", &|text| keep(sentences::numbered(text, ""))),
        ("sentences::has_a_number_twice", &|text| {
            keep(sentences::has_a_number_twice(&[text, text], text));
        }),
        ("sentences::numbered_or", &|text| {
            keep(sentences::numbered_or(text, running_text::split));
        }),
        ("sentences::numbered_or, numbered", &|text| {
            let text = format!("0 {text} 1 {text}");
            keep(sentences::numbered_or(&text, running_text::split));
        }),
        ("sentences::lines", &|text| keep(sentences::lines(text))),
    ]);
}
