//! A run as MEDIQA-CORR 2024 takes it: `[id] [flag] [sentence id] "[correction]"`, a note a line, which the task's own scorer reads.

use crate::diagnosis::Failure;
use crate::record::NoteLine;
use crate::text::split_words;

/// Stands for no correction.
const NOTHING: &str = "NA";

/// The text of the file. A note whose flag could not be read, or that errored, has no line, and so counts as wrong.
///
/// # Errors
/// An id that the official scorer would not know for one.
pub fn write<'a>(notes: impl IntoIterator<Item = &'a NoteLine>) -> Result<String, Failure> {
    notes.into_iter().filter_map(line).collect()
}

/// Line breaks in a correction become blanks and its backslashes are doubled, for the scorer takes them for escapes.
fn line(note: &NoteLine) -> Option<Result<String, Failure>> {
    let flag = u8::from(note.flag.said().filter(|_| note.error.is_none())?);
    let words: Vec<&str> = split_words(note.correction.as_deref().unwrap_or_default()).collect();
    let correction = match words.is_empty() {
        true => NOTHING.to_owned(),
        false => format!("\"{}\"", words.join(" ").replace('\\', "\\\\")),
    };
    let sentence_id = note.sentence_id.map_or("-1".to_owned(), |id| id.to_string());
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    Some(match !note.item.is_empty() && note.item.chars().all(is_plain) {
        true => Ok(format!("{} {flag} {sentence_id} {correction}\n", note.item)),
        false => Err(Failure::usage(
            format!("the id `{}` cannot stand in a submission", note.item),
            "an id has a to z, 0 to 9 and - alone",
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_note() {
        let line = |id: &str, is_wrong: bool, sentence_id, correction: Option<&str>| NoteLine {
            item: id.to_owned(),
            flag: Some(is_wrong).into(),
            sentence_id,
            correction: correction.map(str::to_owned),
            ..NoteLine::default()
        };
        let text = write(&[
            line("ms-test-0", true, Some(0), Some("pH\r\n7.1 \\n  is \"it\".")),
            line("ms-test-1", false, None, None),
            line("ms-test-2", true, None, Some(" ")),
        ]);
        assert_eq!(
            text.unwrap(),
            "ms-test-0 1 0 \"pH 7.1 \\\\n is \"it\".\"\nms-test-1 0 -1 NA\nms-test-2 1 -1 NA\n"
        );
        for id in ["Ward 7", "", "WARD-7"] {
            assert!(write(&[line(id, false, None, None)]).is_err(), "{id}");
        }
    }
}
