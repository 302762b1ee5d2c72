//! Files that are one document each: text, Markdown, whose headings become titles, and HTML.

use std::io::Read;
use std::path::Path;

use super::{Form, LARGEST, Record, Records, bounded, html};
use crate::corpus::CorpusError;

/// The records of one file; `name` is its path inside the source's folder and the document's id.
pub fn records(path: &Path, name: &str) -> Result<Records<'static>, CorpusError> {
    let text = read(path)?;
    let plain = match path.extension().is_some_and(|ending| ending == "gz") {
        true => path.with_extension(""),
        false => path.to_owned(),
    };
    let stem = plain.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ending = plain.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let parts = match &*ending {
        "md" => sections(&text, &stem),
        "html" | "htm" => {
            let page = html::read(&text);
            let title = if page.title.is_empty() { stem } else { page.title };
            vec![(title, page.text)]
        }
        _ => vec![(stem, text)],
    };
    let name = name.to_owned();
    Ok(Box::new(parts.into_iter().enumerate().map(move |(index, (title, text))| {
        Ok(Record {
            id: name.clone(),
            title,
            url: String::new(),
            date: String::new(),
            text,
            form: if index == 0 { Form::Whole } else { Form::More },
        })
    })))
}

/// A file's text, unpacked and without a byte order mark.
///
/// # Errors
/// It is too large, is not UTF-8 or has NUL bytes.
pub fn read(path: &Path) -> Result<String, CorpusError> {
    let mut bytes = Vec::new();
    let read = bounded::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(too_large(path));
    }
    if let Some(byte) = bytes.iter().position(|byte| *byte == 0) {
        let problem = format!("has a NUL byte at {byte}: it is no text");
        return Err(CorpusError::Input { path: path.to_owned(), problem, hint: None });
    }
    let text = String::from_utf8(bytes).map_err(|error| CorpusError::NotUtf8 {
        path: path.to_owned(),
        byte: error.utf8_error().valid_up_to() as u64,
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn too_large(path: &Path) -> CorpusError {
    CorpusError::Input {
        path: path.to_owned(),
        problem: format!("is larger than the {} MB of a document", LARGEST >> 20),
        hint: Some("split it into documents".to_owned()),
    }
}

/// A Markdown text's sections under the titles `first heading -- second`; what stands before any heading is under `stem`.
fn sections(text: &str, stem: &str) -> Vec<(String, String)> {
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut sections = vec![(stem.to_owned(), String::new())];
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
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

/// The level and text of a heading like `## Dosage ##`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && rest.starts_with([' ', '\t']);
    is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
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
        assert_eq!(refused("a.txt", b"abc\xffd"), "a.txt is not UTF-8 at byte 3");
        assert_eq!(refused("a.md", b"ab\0d"), "a.md has a NUL byte at 2: it is no text");
        let large = vec![b'x'; LARGEST as usize + 1];
        assert_eq!(refused("a.html", &large), "a.html is larger than the 64 MB of a document");
        assert_eq!(
            refused("a.txt.gz", &packed(&large)),
            "a.txt.gz is larger than the 64 MB of a document"
        );
        let torn = packed(b"text");
        assert!(refused("torn.md.gz", &torn[..torn.len() - 4]).starts_with("torn.md.gz: "));
        let path = folder.path().join("b.md.gz");
        fs_err::write(&path, packed(b"# Sepsis\nFluids.\n")).unwrap();
        let record = records(&path, "b.md.gz").unwrap().next().unwrap().unwrap();
        assert_eq!((&*record.title, &*record.text), ("Sepsis", "Fluids.\n"));
        fs_err::write(&path, packed(b"plain")).unwrap();
        assert_eq!(records(&path, "b.md.gz").unwrap().next().unwrap().unwrap().title, "b");
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
}
