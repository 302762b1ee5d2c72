//! Files that are one document each: text, and Markdown, whose headings become titles.

use std::path::Path;

use super::{DocumentPart, LARGEST, Records, ending, open, plain_line_ends, unfit};
use crate::corpus::split::statpearls;
use crate::corpus::store::layout::DocumentRecord;
use crate::diagnosis::Failure;
use crate::{data, outside};

/// The records of one file; `name` is its path inside the source's folder and the document's id.
pub fn records(path: &Path, name: &str) -> Result<Records<'static>, Failure> {
    let text = read(path)?;
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    let plain = if is_packed { path.with_extension("") } else { path.to_owned() };
    let stem = plain.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let parts = match ending(path) == "md" {
        true => sections(&text, &stem),
        false => vec![(stem, text)],
    };
    Ok(parts_of(name.to_owned(), parts, false))
}

/// The chunks of an article of StatPearls.
pub fn article(path: &Path) -> Result<Records<'static>, Failure> {
    let sections = statpearls::split(&read(path)?).map_err(|problem| unfit(path, &problem))?;
    let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(parts_of(id, sections, true))
}

/// Titles and texts of one document: to be split, or chunks as they are.
fn parts_of(id: String, parts: Vec<(String, String)>, are_chunks: bool) -> Records<'static> {
    Box::new(parts.into_iter().zip(0..).map(move |((title, text), place)| {
        let (id, url, date) = (id.clone(), String::new(), String::new());
        let document = DocumentRecord { id, title, url, date };
        let paragraph = are_chunks.then_some(place);
        Ok(DocumentPart { document, text, is_first: place == 0, paragraph })
    }))
}

/// A file's text, unpacked, without a byte order mark, its lines ended by `\n`.
///
/// # Errors
/// It is too large, is not UTF-8 or has NUL bytes.
pub fn read(path: &Path) -> Result<String, Failure> {
    let bytes = outside::within(open(path)?, LARGEST).map_err(|error| {
        std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })?;
    let large = format!("is larger than the {} MB of a document", LARGEST >> 20);
    let bytes = bytes.ok_or_else(|| unfit(path, &large))?;
    if let Some(byte) = bytes.iter().position(|byte| *byte == 0) {
        return Err(unfit(path, &format!("has a NUL byte at {byte}: it is no text")));
    }
    Ok(plain_line_ends(data::text(path, bytes)?))
}

/// A Markdown text's sections under the titles `first heading -- second`; what stands before any heading is under `stem`.
pub(super) fn sections(text: &str, stem: &str) -> Vec<(String, String)> {
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut sections = vec![(stem.to_owned(), String::new())];
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        is_code ^= is_fence(line);
        match heading(line).filter(|_| !is_code) {
            None => {
                if let Some((_, body)) = sections.last_mut() {
                    body.push_str(line);
                }
            }
            Some((level, heading)) => {
                headings.retain(|(above, _)| *above < level);
                headings.push((level, heading.to_owned()));
                let titles: Vec<&str> = headings.iter().map(|(_, title)| &**title).collect();
                sections.push((titles.join(" -- "), String::new()));
            }
        }
    }
    // A document without text is told as one: the first part stays where nothing else is.
    let is_empty = |(_, body): &(String, String)| body.trim().is_empty();
    match sections.iter().all(is_empty) {
        true => sections.truncate(1),
        false => sections.retain(|section| !is_empty(section)),
    }
    sections
}

/// Whether a line begins or ends a block of code: by backticks, and none behind them, where it would be a word of code.
fn is_fence(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("```");
    rest.is_some_and(|rest| !rest.trim_start_matches('`').contains('`'))
}

/// The level and text of a heading like `## Dosage ##`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    let bare = rest.trim().trim_end_matches('#');
    // In `# Interleukin-2#` the last one is of the word.
    let is_closed = bare.is_empty() || bare.ends_with([' ', '\t']);
    is_heading.then(|| (level, if is_closed { bare.trim_end() } else { rest.trim() }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn files_that_are_no_text_are_refused_by_name_and_place() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs_err::write(&path, bytes).unwrap();
            let error = records(&path, name).err().unwrap().to_string();
            error.rsplit('/').next().unwrap().to_owned()
        };
        assert_eq!(refused("a.txt", b"ab\nc\xffd"), "a.txt:2: not valid UTF-8");
        assert_eq!(refused("a.md", b"ab\0d"), "a.md has a NUL byte at 2: it is no text");
        let large = vec![b'x'; LARGEST as usize + 1];
        assert_eq!(refused("b.txt", &large), "b.txt is larger than the 64 MB of a document");
        assert_eq!(
            refused("a.txt.gz", &packed(&large)),
            "a.txt.gz is larger than the 64 MB of a document"
        );
        let torn = packed(b"text");
        assert!(refused("torn.md.gz", &torn[..torn.len() - 4]).starts_with("torn.md.gz: "));
        let path = folder.path().join("b.md.gz");
        fs_err::write(&path, packed(b"# Sepsis\nFluids.\n")).unwrap();
        let record = records(&path, "b.md.gz").unwrap().next().unwrap().unwrap();
        assert_eq!((&*record.document.title, &*record.text), ("Sepsis", "Fluids.\n"));
        fs_err::write(&path, packed(b"plain")).unwrap();
        assert_eq!(records(&path, "b.md.gz").unwrap().next().unwrap().unwrap().document.title, "b");
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn headings_become_titles() {
        let text = "Before.\n# Sepsis\n\n## Fluids ##\n30 ml/kg.\n```\n# no heading\n```\n## Drugs\n\n# End\n#hashtag\n";
        let expected = [
            ("file", "Before.\n"),
            ("Sepsis -- Fluids", "30 ml/kg.\n```\n# no heading\n```\n"),
            ("End", "#hashtag\n"),
        ];
        let expected = expected.map(|(title, body)| (title.to_owned(), body.to_owned()));
        assert_eq!(sections(text, "file"), expected);
        assert_eq!(sections("", "file"), [("file".to_owned(), String::new())]);
    }

    /// The titles of a text whose last heading is `# End`, but for that of the file.
    fn titles(text: &str) -> Vec<String> {
        let sections = sections(&format!("{text}\n# End\nend\n"), "file").into_iter();
        sections.map(|(title, _)| title).filter(|title| title != "file").collect()
    }

    #[test]
    fn what_stands_in_a_block_of_code_is_no_heading_and_what_follows_it_is_one() {
        for block in ["```sh\n# no\n```", "1. First\n   ```\n# no\n    ```", "````\n# no\n````"] {
            assert_eq!(titles(block), ["End"], "{block}");
        }
        // None of these opens one.
        for text in ["```npm test``` runs them", "Give ``` and ~~~", "``two``", "~~struck~~"] {
            assert_eq!(titles(&format!("{text}\n# Yes\nyes")), ["Yes", "End"], "{text}");
        }
        assert_eq!(titles("# C#\nx\n# D # #\ny"), ["C#", "D #", "End"]);
    }

    #[test]
    fn lines_end_alike_whatever_wrote_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("One.{end}{end}Two.{end}# Three{end}four{end}");
            fs_err::write(&path, format!("\u{feff}{text}")).unwrap();
            let records = records(&path, "a.md").unwrap().map(Result::unwrap);
            let found: Vec<String> = records.map(|record| record.text).collect();
            assert_eq!(found, ["One.\n\nTwo.\n", "four\n"], "{end:?}");
        }
    }
}
