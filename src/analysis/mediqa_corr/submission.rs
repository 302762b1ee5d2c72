//! A submission: `[id] [flag] [sentence id] "[correction]"`, a note a line, read as the official scorer reads it.

use std::collections::HashMap;
use std::path::Path;

use crate::diagnosis::Failure;
use crate::outside;
use crate::record::NoteLine;
use crate::text::{Pattern, is_whitespace, split_words};

/// Stands for no correction.
pub const NOTHING: &str = "NA";

/// What a run says of one note, as written: the scorer compares flags and ids as texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    pub flag: String,
    pub sentence_id: String,
    /// `NA` wherever the flag is `0`.
    pub correction: String,
}

/// The valid lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// By the note's id; of several lines with one id the last.
    pub predictions: HashMap<String, Prediction>,
    /// Numbers, from 1, of lines that are neither blank nor of the form; they count as missing.
    pub invalid_lines: Vec<usize>,
}

impl Submission {
    /// # Errors
    /// A file that cannot be read; as [`Submission::parse`].
    pub fn read(path: &Path) -> Result<Submission, Failure> {
        let text = String::from_utf8(outside::file(path)?);
        let not_text = |_| Failure::refused(format!("{}: not valid UTF-8", path.display()));
        let text = text.map_err(not_text)?;
        Submission::parse(&text, path)
    }

    /// Reads the content of a file; the path is for the errors.
    ///
    /// # Errors
    /// A backslash that is not doubled: the official scorer takes it for an escape, and changes the correction or stops.
    pub fn parse(text: &str, path: &Path) -> Result<Submission, Failure> {
        let mut submission = Submission::default();
        let text = text.replace("\r\n", "\n");
        for (number, line) in (1..).zip(text.split(['\n', '\r'])) {
            let line = line.trim_matches(is_whitespace);
            if line.is_empty() {
                continue;
            }
            if !VALID.is_match(line) {
                submission.invalid_lines.push(number);
                continue;
            }
            let halves: Vec<&str> = line.split(r"\\").collect();
            if halves.iter().any(|half| half.contains('\\')) {
                return Err(Failure::usage(
                    format!("{}:{number}: a backslash alone", path.display()),
                    "the official scorer takes backslashes for escapes, so double them",
                ));
            }
            let (id, prediction) = prediction(&halves.join(r"\"));
            submission.predictions.insert(id, prediction);
        }
        Ok(submission)
    }
}

/// A line with a note's id, flag, sentence and correction, one whitespace character each before a number; Python counts four more than
/// Unicode.
static VALID: Pattern =
    Pattern::new(r"\A[a-z0-9-]+[\s\x1c-\x1f][0-9]+[\s\x1c-\x1f]-?[0-9]+[\s\x1c-\x1f](?s:.+)\z");

fn prediction(line: &str) -> (String, Prediction) {
    let mut words = split_words(line);
    let mut next = || words.next().unwrap_or_default().to_owned();
    let (id, flag, sentence_id) = (next(), next(), next());
    let words: Vec<&str> = words.collect();
    let joined = words.join(" ");
    let correction = if flag == "0" { NOTHING } else { without_quotes(&joined) };
    let correction = correction.to_owned();
    (id, Prediction { flag, sentence_id, correction })
}

/// The text without quotes before and after it; of quotes alone the last stays.
fn without_quotes(mut text: &str) -> &str {
    while text.len() > 1
        && let Some(rest) = text.strip_prefix('"')
    {
        text = rest;
    }
    while text.len() > 1
        && let Some(rest) = text.strip_suffix('"')
    {
        text = rest;
    }
    text
}

/// A run as MEDIQA-CORR 2024 takes it: a line a note. One whose flag could not be read, or that errored, has no line, and so counts as wrong.
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
    let written = format!("{} {flag} {sentence_id} {correction}", note.item);
    Some(match VALID.is_match(&written) {
        true => Ok(written + "\n"),
        false => Err(Failure::usage(
            format!("the id `{}` cannot stand in a submission", note.item),
            "an id has a to z, 0 to 9 and - alone",
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Submission {
        Submission::parse(text, Path::new("run.txt")).unwrap()
    }

    /// What a line says of the note `a-1`: flag, sentence id and correction.
    #[track_caller]
    fn said(line: &str) -> (String, String, String) {
        let mut submission = parse(line);
        assert!(submission.invalid_lines.is_empty(), "{line:?}");
        let Prediction { flag, sentence_id, correction } =
            submission.predictions.remove("a-1").unwrap();
        (flag, sentence_id, correction)
    }

    #[track_caller]
    fn corrects(line: &str, expected: &str) {
        assert_eq!(said(line).2, expected, "{line:?}");
    }

    #[test]
    fn blanks_are_closed_up_and_quotes_stripped() {
        corrects("a-1 1 3 \"\"It  is\u{a0}so.\"\"\r\n", "It is so.");
        corrects("  a-1\t1\u{1f}3  It is \"so\"  ", "It is \"so");
        corrects("a-1 1 3 \"", "\"");
        corrects("a-1 1 3 \"\"\"", "\"");
        corrects("a-1 1 3 \" It", " It");
    }

    #[test]
    fn flag_0_corrects_nothing_and_other_texts_stay_as_written() {
        assert_eq!(said("a-1 0 4 Word."), ("0".into(), "4".into(), "NA".into()));
        assert_eq!(said("a-1 00 04 W"), ("00".into(), "04".into(), "W".into()));
        assert_eq!(said("a-1 1 -1 NA"), ("1".into(), "-1".into(), "NA".into()));
    }

    #[test]
    fn lines_of_another_form_are_counted_with_their_places() {
        let invalid = [
            "A-1 1 2 Word",
            "a_1 1 2 Word",
            "a-1  1 2 Word",
            "a-1 1  2 Word",
            "a-1 -1 2 Word",
            "a-1 1 --2 Word",
            "a-1 1 2",
            "a-1 1 Word",
            "a-1 1 2.0 Word",
            "a-1 1 ٢ Word",
            "\u{feff}a-1 1 2 Word",
            "1 2 Word",
        ];
        let submission = parse(&format!("\n{}\r\n \r b-2 1 0 Word", invalid.join("\n")));
        assert_eq!(submission.invalid_lines, Vec::from_iter(2..=13));
        assert_eq!(submission.predictions.len(), 1);
        assert!(parse("").predictions.is_empty());
    }

    #[test]
    fn of_lines_with_one_id_the_last_counts() {
        let submission = parse("a-1 1 2 One\na-1 0 -1 NA\nb 1 1 x\na-1 1 3 Three\n");
        assert_eq!(submission.predictions["a-1"].correction, "Three");
        assert_eq!(submission.predictions.len(), 2);
    }

    #[test]
    fn backslashes_are_doubled() {
        corrects(r"a-1 1 2 pH\\n7.1 \\ x", r"pH\n7.1 \ x");
        let error = Submission::parse("\na-1 1 2 a\\d", Path::new("run.txt")).unwrap_err();
        assert_eq!(error.to_string(), "run.txt:2: a backslash alone");
        assert!(error.hint().unwrap().contains("double them"));
    }

    #[test]
    fn what_is_written_is_read_back() {
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
        let text = text.unwrap();
        assert_eq!(
            text,
            "ms-test-0 1 0 \"pH 7.1 \\\\n is \"it\".\"\nms-test-1 0 -1 NA\nms-test-2 1 -1 NA\n"
        );
        let read = parse(&text);
        assert_eq!(read.predictions.len(), 3);
        assert_eq!(read.predictions["ms-test-0"].correction, "pH 7.1 \\n is \"it\".");
        for id in ["Ward 7", "", "WARD-7"] {
            assert!(write(&[line(id, false, None, None)]).is_err(), "{id}");
        }
    }
}
