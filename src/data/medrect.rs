//! MedRECT: clinical notes with at most one error, in Japanese (of the national licensing examinations) and in English (those of MEDEC-MS's
//! test notes that passed its screening: MEDEC, cleaned).
//!
//! The file is one JSON array of records with `sample_id`, `sentences` (lines `1. …`, numbered from 1), `error_flag`, and where it is 1
//! `error_sentence_id` (from 1), `error_sentence`, `corrected_sentence` and `error_type`; `metadata.original_text` is the text where it is
//! there, else the sentences one after the other. Other fields are ignored. A note's language is detected from its script.
//!
//! A line without a number goes on with the sentence before. A record is refused whose numbers do not count from 1, or whose error is another of its sentences than that of its id.

use super::error::{quoted, shown};
use super::row::Row;
use super::source::Source;
use super::{DataError, Draft, Note, NoteError, NoteGold, contradiction, script};
use crate::record::Language;

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let rows = source.elements()?.into_iter();
    let notes = rows.map(|row| {
        let row = row?;
        let note = note(&row)?;
        Ok((row.place, note))
    });
    let notes: Vec<_> = notes.collect();
    let notices = contradiction::notices(&notes);
    let mut languages = notes.iter().flatten().map(|(_, note)| note.language);
    let first = languages.next();
    let name = match first.filter(|first| languages.all(|language| language == *first)) {
        Some(Language::Japanese) => "medrect-ja",
        Some(Language::English) => "medrect-en",
        Some(Language::Chinese | Language::Arabic) | None => "medrect",
    };
    Ok(Draft::new(name, &[source], notes, notices))
}

fn note(row: &Row) -> Result<Note, DataError> {
    let id = row.optional_id("sample_id")?.ok_or_else(|| row.wrong("sample_id", "is missing"))?;
    let sentences = sentences(row)?;
    let original = row.object("metadata")?;
    let original = original.as_ref().map(|more| more.optional_text("original_text")).transpose()?;
    let text = match original.flatten() {
        Some(text) => text.to_owned(),
        None => {
            let text = sentences.join(" ");
            let is_spaced = script::language(&text) != Language::Japanese;
            if is_spaced { text } else { sentences.concat() }
        }
    };
    Ok(Note {
        gold: Some(gold(row, &sentences)?),
        language: script::language(&text),
        text,
        sentences,
        id,
    })
}

/// The lines without their numbers.
fn sentences(row: &Row) -> Result<Vec<String>, DataError> {
    let mut sentences: Vec<String> = Vec::new();
    for line in row.text("sentences")?.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let next = format!("{}. ", sentences.len() + 1);
        if let Some(sentence) = line.strip_prefix(&next) {
            sentences.push(sentence.trim().to_owned());
            continue;
        }
        let number = line.split_once(". ").map(|(number, _)| number.parse::<usize>());
        match sentences.last_mut() {
            Some(last) if !matches!(number, Some(Ok(_))) => *last = format!("{last} {line}"),
            _ => {
                let problem = format!("has the line {} where {next}is due", quoted(line));
                return Err(row.wrong("sentences", problem));
            }
        }
    }
    Ok(sentences)
}

fn gold(row: &Row, sentences: &[String]) -> Result<NoteGold, DataError> {
    let flag = row.require("error_flag")?;
    match flag.as_u64() {
        Some(0) if row.get("error_sentence_id").is_none() => Ok(NoteGold { error: None }),
        Some(0) => Err(row.wrong("error_sentence_id", "is given, where the flag is 0")),
        Some(1) => {
            let place = row.require("error_sentence_id")?;
            let at = place.as_u64().and_then(|id| (id as usize).checked_sub(1));
            let sentence_id = at.filter(|at| *at < sentences.len()).ok_or_else(|| {
                let problem = format!("is {}, not one of 1 to {}", shown(place), sentences.len());
                row.wrong("error_sentence_id", problem)
            })?;
            let sentence = row.text("error_sentence")?;
            let is_of = |other: &String| contradiction::is_same(sentence, other);
            if !is_of(&sentences[sentence_id]) && sentences.iter().any(is_of) {
                let own = quoted(&sentences[sentence_id]);
                let problem =
                    format!("is {}, and sentence {} is {own}", quoted(sentence), sentence_id + 1);
                return Err(row.wrong("error_sentence", problem));
            }
            Ok(NoteGold {
                error: Some(NoteError {
                    sentence_id,
                    sentence: sentence.to_owned(),
                    correction: row.text("corrected_sentence")?.to_owned(),
                    kind: row.optional_text("error_type")?.map(str::to_owned),
                    keywords: Vec::new(),
                    difficulty: None,
                    reasoning: None,
                }),
            })
        }
        _ => Err(row.wrong("error_flag", format!("is {}, not 0 or 1", shown(flag)))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::super::{Dataset, Format, read};
    use super::*;

    fn parse(records: &Value) -> Result<Dataset, DataError> {
        let source = Source::new(Path::new("medrect.json"), records.to_string().into_bytes())?;
        read(source, Format::Medrect)
    }

    fn wrong() -> Value {
        json!({
            "sample_id": "118A32_e_model", "error_flag": 1, "error_type": "検査解釈エラー", "error_sentence_id": 2,
            "sentences": "1. 70歳の男性。\n2. 分画の分析を省略した。\n3. 治療を開始した。",
            "error_sentence": "分画の分析を省略した。", "corrected_sentence": "分画を分析した。", "corrected_text": "…",
            "metadata": {"choice": "e"}, "screening_results": {"is_valid": true},
        })
    }

    #[test]
    fn sentences_count_from_1_in_the_file_and_from_0_here() {
        let dataset = parse(&json!([wrong()])).unwrap();
        assert_eq!(dataset.name, "medrect-ja");
        let note = dataset.notes()[0];
        assert_eq!((note.language, note.sentences.len()), (Language::Japanese, 3));
        assert_eq!(note.text, "70歳の男性。分画の分析を省略した。治療を開始した。");
        let error = note.gold.as_ref().unwrap().error.as_ref().unwrap();
        assert_eq!((error.sentence_id, &*error.correction), (1, "分画を分析した。"));
        assert_eq!(error.kind.as_deref(), Some("検査解釈エラー"));
    }

    #[test]
    fn an_english_note_has_its_own_text_and_lines_that_break_within_a_value() {
        let record = json!({
            "sample_id": "ms-test-1", "error_flag": 0, "error_type": null, "error_sentence_id": null, "error_sentence": null,
            "corrected_sentence": null, "sentences": "1. The pressure is\n2. 120/70 mm\nHg.\n3. He rests.",
            "metadata": {"original_text": "The pressure is 120/70 mm Hg. He rests."},
        });
        let dataset = parse(&json!([record])).unwrap();
        let note = dataset.notes()[0];
        assert_eq!(note.sentences, ["The pressure is", "120/70 mm Hg.", "He rests."]);
        assert_eq!(note.text, "The pressure is 120/70 mm Hg. He rests.");
        assert!(note.gold.as_ref().unwrap().error.is_none() && dataset.name == "medrect-en");
    }

    #[test]
    fn contradictions_are_refused_by_field() {
        for (field, value, problem) in [
            ("error_sentence_id", json!(4), "is 4, not one of 1 to 3"),
            ("error_sentence_id", json!(0), "is 0, not one of 1 to 3"),
            ("error_sentence_id", json!(3), "and sentence 3 is"),
            ("error_flag", json!(0), "is given, where the flag is 0"),
            ("error_flag", json!("1"), "not 0 or 1"),
            ("sentences", json!("2. 治療を開始した。"), "where 1. is due"),
            ("sentences", json!("1. 70歳の男性。\n3. 治療を開始した。"), "where 2. is due"),
            ("corrected_sentence", Value::Null, "is missing"),
            ("sample_id", Value::Null, "is missing"),
        ] {
            let mut record = wrong();
            record[field] = value;
            let error = parse(&json!([record])).unwrap_err().to_string();
            assert!(error.contains(problem), "{field}: {error}");
        }
        let error = parse(&json!({"a": 1})).unwrap_err().to_string();
        assert!(error.contains("not one JSON array"), "{error}");
    }
}
