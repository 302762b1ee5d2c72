//! Files of JSON Lines, plain or compressed by gzip: one table of fields a format.

use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use super::{DocumentPart, LARGEST, Records, SourceFormat, open, plain_line_ends};
use crate::corpus::description::Source;
use crate::corpus::store::layout::DocumentRecord;
use crate::data::{DataError, Position, Row, RowReader};
use crate::diagnosis::Failure;

/// Where a format keeps id, title and text.
fn fields(format: SourceFormat) -> [&'static str; 3] {
    match format {
        SourceFormat::Medquad => ["id", "question", "answer"],
        SourceFormat::Guidelines => ["id", "title", "clean_text"],
        SourceFormat::Medrag => ["id", "title", "content"],
        SourceFormat::Wikipedia => ["wiki_id", "title", "text"],
        _ => ["id", "title", "text"],
    }
}

/// Rows to records: what has to be remembered from row to row.
struct Reader<'a> {
    source: &'a Source,
    /// The articles that a filter keeps.
    wanted: Option<HashSet<String>>,
    /// The document of the passage before.
    document: Option<String>,
    /// How often MedQuAD has used a name.
    names: BTreeMap<String, u32>,
}

/// The records of a file of rows.
pub fn records<'a>(source: &'a Source, path: &Path, data: &Path) -> Result<Records<'a>, Failure> {
    let mut rows = RowReader::json_lines(path, open(path)?);
    let wanted = source.filter.as_ref().map(|filter| wiki_ids(&data.join(filter)));
    let mut reader =
        Reader { source, wanted: wanted.transpose()?, document: None, names: BTreeMap::new() };
    let mut next = move || {
        while let Some(row) = rows.next_row()? {
            if let Some(record) = reader.record(&row)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    };
    Ok(Box::new(std::iter::from_fn(move || next().map_err(of_rows).transpose())))
}

fn of_rows(error: DataError) -> Failure {
    let hint = "docs/corpora.md says what rows a source may have";
    match error {
        DataError::Row { .. } => Failure::usage(error.to_string(), hint),
        other => other.into(),
    }
}

impl Reader<'_> {
    /// The record of one row; `None` of one that the source does not want.
    fn record(&mut self, row: &Row) -> Result<Option<DocumentPart>, DataError> {
        let given = |field: &str| Ok::<_, DataError>(row.word(field)?.unwrap_or_default());
        let source = self.source;
        let [id, title, text] = fields(source.format);
        if !source.only.is_empty() && !source.only.contains(&given("source")?) {
            return Ok(None);
        }
        let id = row.optional_id(id)?;
        let is_wanted =
            |wanted: &HashSet<String>| id.as_ref().is_some_and(|id| wanted.contains(id));
        if !self.wanted.as_ref().is_none_or(is_wanted) {
            return Ok(None);
        }
        row.require(text)?;
        let wrong = |problem: String| Err(row.wrong(text, problem));
        let text = plain_line_ends(given(text)?);
        if text.len() as u64 > LARGEST {
            return wrong(format!("is larger than the {} MB of a document", LARGEST >> 20));
        }
        let (title, url, date) = (given(title)?, given("url")?, given("date")?);
        if [&text, &title, &url, &date].iter().any(|field| field.contains('\0')) {
            return wrong("has a NUL character: it is no text".to_owned());
        }
        let (id, paragraph) = self.place(row, id)?;
        // Paragraphs of one document follow each other.
        let before = self.document.replace(id.clone());
        let is_first = paragraph.is_none() || before.as_ref() != Some(&id);
        let document = DocumentRecord { id, title, url, date };
        Ok(Some(DocumentPart { document, text, is_first, paragraph }))
    }

    /// What a row's document is called, by its line where it has no id, and where in it stands what is a chunk as it is.
    fn place(&mut self, row: &Row, id: Option<String>) -> Result<(String, Option<u32>), DataError> {
        let id = id.unwrap_or_else(|| match &row.place.position {
            Position::Line(line) => line.to_string(),
            Position::Record(record) => record.clone(),
        });
        Ok(match self.source.format {
            SourceFormat::Medrag => {
                let parts = id.rsplit_once('_');
                let parts = parts.and_then(|(id, number)| Some((id, number.parse().ok()?)));
                let (document, paragraph) = parts.unwrap_or((&id, 0));
                (document.to_owned(), Some(paragraph))
            }
            SourceFormat::Wikipedia => {
                let number = row.word("paragraph_id")?.unwrap_or_default();
                let none = |_| row.wrong("paragraph_id", "is no number");
                (id, Some(number.parse().map_err(none)?))
            }
            SourceFormat::Medquad => {
                let source = row.word("source")?.unwrap_or_default();
                (self.medquad_name(&source, &id), None)
            }
            _ => (id, None),
        })
    }

    /// As LiveQA's judgements name answers: `GHR_0000163_Sec1` of the source GHR and the id `0000163-1`. Names that come
    /// more than once get a number.
    fn medquad_name(&mut self, source: &str, id: &str) -> String {
        let (document, section) = id.rsplit_once('-').unwrap_or((id, "1"));
        let name = format!("{source}_{document}_Sec{section}");
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            again => format!("{name}.{again}"),
        }
    }
}

/// The column `wiki_id` of a CSV file.
fn wiki_ids(path: &Path) -> Result<HashSet<String>, Failure> {
    let read = |file: Box<dyn BufRead>| {
        let mut table = RowReader::table(path, file, Some("wiki_id"))?;
        let mut ids = HashSet::new();
        while let Some(row) = table.next_row()? {
            ids.extend(row.word("wiki_id")?.map(|id| id.trim_end_matches(".0").to_owned()));
        }
        Ok(ids)
    };
    read(open(path)?).map_err(of_rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;

    use super::*;

    fn source(format: &str, more: &str) -> Source {
        toml::from_str(&format!(
            "label = \"x\"\nformat = \"{format}\"\npath = \"x\"\nlicence = \"none\"\n{more}"
        ))
        .unwrap()
    }

    fn read(source: &Source, name: &str, bytes: &[u8]) -> Result<Vec<DocumentPart>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs_err::write(&path, bytes).unwrap();
        fs_err::write(folder.path().join("topics.csv"), "title,wiki_id\nOtitis,12\n").unwrap();
        let records = super::super::records(source, &path, folder.path());
        let read: Result<Vec<DocumentPart>, Failure> = records.and_then(Iterator::collect);
        read.map_err(|error| error.to_string().rsplit('/').next().unwrap().to_owned())
    }

    fn places(records: &[DocumentPart]) -> Vec<(&str, Option<u32>, bool)> {
        records
            .iter()
            .map(|record| (&*record.document.id, record.paragraph, record.is_first))
            .collect()
    }

    #[test]
    fn own_rows_have_what_they_say_and_their_line_for_an_id() {
        let lines = "{\"text\": \"One.\", \"date\": \"2021-05-03\"}\n\n{\"id\": 7, \"title\": \"T\", \"text\": \"Two.\", \"url\": \"https://x\", \"more\": [1]}\n";
        let records = read(&source("jsonl", ""), "a.jsonl", lines.as_bytes()).unwrap();
        assert_eq!(places(&records), [("1", None, true), ("7", None, true)]);
        assert_eq!(
            (&*records[0].document.date, &*records[1].document.url, &*records[1].document.title),
            ("2021-05-03", "https://x", "T")
        );
    }

    #[test]
    fn published_rows_are_found_under_their_own_names() {
        let row = "{\"id\": \"0000163-2\", \"source\": \"GHR\", \"question\": \"Q?\", \"answer\": \"A.\"}\n";
        let records = read(&source("medquad", ""), "a.jsonl", row.repeat(2).as_bytes()).unwrap();
        assert_eq!(
            places(&records),
            [("GHR_0000163_Sec2", None, true), ("GHR_0000163_Sec2.2", None, true)]
        );
        assert_eq!((&*records[0].document.title, &*records[0].text), ("Q?", "A."));
        let rows = "{\"id\": \"a\", \"source\": \"who\", \"clean_text\": \"x\"}\n{\"id\": \"b\", \"source\": \"icrc\", \"clean_text\": \"y\"}\n";
        let records =
            read(&source("guidelines", "only = [\"who\"]"), "a.jsonl", rows.as_bytes()).unwrap();
        assert_eq!(places(&records), [("a", None, true)]);
        let rows = "{\"id\": \"Gray_0\", \"title\": \"Gray\", \"content\": \"x\"}\n{\"id\": \"Gray_1\", \"title\": \"Gray\", \"content\": \"y\"}\n";
        let records = read(&source("medrag", ""), "a.jsonl", rows.as_bytes()).unwrap();
        assert_eq!(places(&records), [("Gray", Some(0), true), ("Gray", Some(1), false)]);
    }

    #[test]
    fn paragraphs_of_wikipedia_are_filtered_by_their_article() {
        let rows = "{\"id\": 0, \"title\": \"Otitis\", \"text\": \"x\", \"wiki_id\": 12, \"paragraph_id\": 3}\n{\"id\": 1, \"title\": \"Paris\", \"text\": \"y\", \"wiki_id\": 13, \"paragraph_id\": 0}\n";
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(rows.as_bytes()).unwrap();
        let source = source("wikipedia", "filter = \"topics.csv\"");
        let records = read(&source, "a.jsonl.gz", &packed.finish().unwrap()).unwrap();
        assert_eq!(places(&records), [("12", Some(3), true)]);
    }

    #[test]
    fn bad_rows_are_refused_by_file_and_place() {
        let refused = |bytes: &[u8]| read(&source("jsonl", ""), "a.jsonl", bytes).unwrap_err();
        let second = |bad: &[u8]| refused(&[b"{\"text\": \"One.\"}\n", bad].concat());
        for (bad, problem) in [
            (b"{\"text\"".as_slice(), "EOF while parsing an object, at column 7"),
            (b"[1]\n", "an object is expected"),
            (b"{\"text\": \"\xff\"}", "not valid UTF-8"),
            (b"{\"text\": \"\\u0000\"}", "field `text` has a NUL character: it is no text"),
            (b"\0\n", "expected value, at column 1"),
            (b"{\"id\": \"x\"}", "field `text` is missing"),
            (b"{\"id\": \"x\", \"text\": null}", "field `text` is missing"),
            (b"{\"text\": \"a\", \"text\": \"b\"}", "the key `text` comes twice, at column 20"),
            (b"{\"text\": [\"a\"]}", "field `text` must be a string or a whole number"),
            (
                b"{\"text\": \"a\", \"title\": true}",
                "field `title` must be a string or a whole number",
            ),
            (
                b"{\"text\": \"a\", \"id\": 12345678901234567890123}",
                "field `id` must be a string or a whole number",
            ),
            (b"{\"text\": \"a\", \"id\": 1.0}", "field `id` must be a string or a whole number"),
            (
                b"{\"text\": \"a\", \"id\": \"a\\nb\"}",
                "field `id` is empty, or has spaces around it, # before it or a control character in it",
            ),
        ] {
            assert_eq!(second(bad), format!("a.jsonl:2: {problem}"));
        }
        let long = format!("{{\"text\": \"{}\"}}", "x".repeat(LARGEST as usize + 1));
        assert_eq!(
            refused(long.as_bytes()),
            "a.jsonl:1: field `text` is larger than the 64 MB of a document"
        );
    }

    #[test]
    fn what_other_programs_write_is_read_as_they_mean_it() {
        let id = "12345678901234567890123";
        let lines = format!(
            "\u{feff}{{\"id\": \"{id}\", \"text\": \"a\\r\\n\\r\\nb\", \"title\": \"\", \"date\": 2021, \"url\": null}}\r\n"
        );
        let records = read(&source("jsonl", ""), "a.jsonl", lines.as_bytes()).unwrap();
        assert_eq!((&*records[0].document.id, &*records[0].text), (id, "a\n\nb"));
        assert_eq!((&*records[0].document.date, &*records[0].document.url), ("2021", ""));
    }

    #[test]
    fn a_filter_that_is_no_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("topics.csv");
        let wanted = |text: &str| {
            fs_err::write(&path, text).unwrap();
            let wanted = wiki_ids(&path).map(|ids| ids.into_iter().collect::<BTreeSet<_>>());
            wanted.map_err(|error| error.to_string().rsplit('/').next().unwrap().to_owned())
        };
        let expected = BTreeSet::from(["12".to_owned(), "13".to_owned()]);
        assert_eq!(wanted("wiki_id,title\n12.0,\"a, b\"\n13,c\n"), Ok(expected));
        for (text, problem) in [
            ("title\na\n", "1: field `wiki_id` is no column of the file"),
            ("wiki_id,wiki_id\n1,2\n", "1: field `wiki_id` comes twice in the header"),
            ("wiki_id,title\n12,\"a\n13,b\n", "2: a quote is not closed"),
        ] {
            assert_eq!(wanted(text), Err(format!("topics.csv:{problem}")));
        }
    }
}
