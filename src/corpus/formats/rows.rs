//! Files of rows, JSON Lines and CSV, plain or compressed by gzip: one table of fields a format.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::bounded::{Lines, Table};
use super::{Form, Format, LARGEST, Record, Records};
use crate::corpus::CorpusError;
use crate::corpus::description::Source;

/// Where a format keeps what.
struct Fields {
    id: &'static str,
    title: &'static str,
    text: &'static str,
}

fn fields(format: Format) -> Fields {
    let (id, title, text) = match format {
        Format::Medquad => ("id", "question", "answer"),
        Format::Guidelines => ("id", "title", "clean_text"),
        Format::Medrag => ("id", "title", "content"),
        Format::Wikipedia => ("wiki_id", "title", "text"),
        _ => ("id", "title", "text"),
    };
    Fields { id, title, text }
}

/// Rows to records: what has to be remembered from row to row.
struct RowReader<'a> {
    source: &'a Source,
    path: PathBuf,
    fields: Fields,
    /// The articles that a filter keeps.
    wanted: Option<HashSet<String>>,
    /// The document of the passage before.
    document: Option<String>,
    /// How often MedQuAD has used a name.
    names: BTreeMap<String, u32>,
}

/// The records of a file of JSON objects, one a line.
pub fn of_lines<'a>(
    source: &'a Source,
    path: &Path,
    data: &Path,
) -> Result<Records<'a>, CorpusError> {
    let mut reader = RowReader::new(source, path);
    if let Some(filter) = &source.filter {
        reader.wanted = Some(wiki_ids(&data.join(filter))?);
    }
    let mut lines = Lines::open(path)?;
    Ok(until_error(move || {
        while let Some(line) = lines.next_line()? {
            let row: Map<String, Value> = serde_json::from_str(&line).map_err(|error| {
                reader.wrong(lines.number(), format!("is not a JSON object: {error}"))
            })?;
            let get = |name: &str| match row.get(name) {
                Some(Value::String(text)) => Some(text.clone()),
                Some(Value::Number(number)) => Some(number.to_string()),
                _ => None,
            };
            if let Some(record) = reader.record(lines.number(), get)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }))
}

/// The records of a CSV file with a header.
pub fn of_table<'a>(source: &'a Source, path: &Path) -> Result<Records<'a>, CorpusError> {
    let mut reader = RowReader::new(source, path);
    let mut table = Table::open(path)?;
    let headers = table.headers().map_err(|error| reader.wrong(1, error.to_string()))?.clone();
    if !headers.iter().any(|header| header == "text") {
        return Err(reader.wrong(1, "the header has no column `text`".to_owned()));
    }
    let mut row = csv::StringRecord::new();
    Ok(until_error(move || {
        loop {
            let line = table.line();
            if !table.next_row(&mut row).map_err(|error| reader.wrong(line, error.to_string()))? {
                return Ok(None);
            }
            let get = |name: &str| {
                let at = headers.iter().position(|header| header == name)?;
                row.get(at).map(str::to_owned)
            };
            if let Some(record) = reader.record(line, get)? {
                return Ok(Some(record));
            }
        }
    }))
}

impl<'a> RowReader<'a> {
    fn new(source: &'a Source, path: &Path) -> RowReader<'a> {
        RowReader {
            source,
            path: path.to_owned(),
            fields: fields(source.format),
            wanted: None,
            document: None,
            names: BTreeMap::new(),
        }
    }

    fn wrong(&self, line: usize, problem: String) -> CorpusError {
        CorpusError::Row { path: self.path.clone(), line, problem }
    }

    /// The record of one row; `None` of one that the source does not want.
    fn record(
        &mut self,
        line: usize,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Record>, CorpusError> {
        let given = |name: &str| get(name).filter(|value| !value.is_empty());
        let only = &self.source.only;
        if !only.is_empty() && !given("source").is_some_and(|source| only.contains(&source)) {
            return Ok(None);
        }
        let id = given(self.fields.id);
        if self
            .wanted
            .as_ref()
            .is_some_and(|wanted| !id.as_ref().is_some_and(|id| wanted.contains(id)))
        {
            return Ok(None);
        }
        let Some(text) = get(self.fields.text) else {
            return Err(self.wrong(line, format!("has no text in `{}`", self.fields.text)));
        };
        if text.len() as u64 > LARGEST {
            let problem = format!("is larger than the {} MB of a document", LARGEST >> 20);
            return Err(self.wrong(line, problem));
        }
        let title = get(self.fields.title).unwrap_or_default();
        let (url, date) = (given("url").unwrap_or_default(), given("date").unwrap_or_default());
        if [&text, &title, &url, &date].iter().any(|field| field.contains('\0')) {
            return Err(self.wrong(line, "has a NUL character: it is no text".to_owned()));
        }
        let id = id.unwrap_or_else(|| line.to_string());
        let (id, form) = self.place(line, id, &given)?;
        Ok(Some(Record { id, title, url, date, text, form }))
    }

    /// What a row's document is called, and where in it the row stands.
    fn place(
        &mut self,
        line: usize,
        id: String,
        given: &impl Fn(&str) -> Option<String>,
    ) -> Result<(String, Form), CorpusError> {
        let (document, paragraph) = match self.source.format {
            Format::Medrag => {
                let parts = id.rsplit_once('_');
                let parts = parts.and_then(|(id, number)| Some((id, number.parse().ok()?)));
                let (document, paragraph) = parts.unwrap_or((&id, 0));
                (document.to_owned(), paragraph)
            }
            Format::Wikipedia => {
                let paragraph = given("paragraph_id").and_then(|number| number.parse().ok());
                let none = || self.wrong(line, "has no number in `paragraph_id`".to_owned());
                (id, paragraph.ok_or_else(none)?)
            }
            Format::Medquad => return Ok((self.medquad_name(id, given("source")), Form::Whole)),
            _ => return Ok((id, Form::Whole)),
        };
        let is_first = self.document.as_ref() != Some(&document);
        self.document = Some(document.clone());
        Ok((document, Form::Passage { paragraph, is_first }))
    }

    /// As LiveQA's judgements name answers: `GHR_0000163_Sec1` of the source GHR and the id `0000163-1`. Names that come
    /// more than once get a number.
    fn medquad_name(&mut self, id: String, source: Option<String>) -> String {
        let (document, section) = id.rsplit_once('-').unwrap_or((&id, "1"));
        let name = format!("{}_{document}_Sec{section}", source.unwrap_or_default());
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            again => format!("{name}.{again}"),
        }
    }
}

/// An iterator that ends with the first error.
fn until_error<'a>(
    mut next: impl FnMut() -> Result<Option<Record>, CorpusError> + 'a,
) -> Records<'a> {
    let mut is_over = false;
    Box::new(std::iter::from_fn(move || {
        let record = if is_over { None } else { next().transpose() };
        is_over = !matches!(record, Some(Ok(_)));
        record
    }))
}

/// The column `wiki_id` of a CSV file.
fn wiki_ids(path: &Path) -> Result<HashSet<String>, CorpusError> {
    let wrong =
        |line: usize, problem: String| CorpusError::Row { path: path.to_owned(), line, problem };
    let mut table = Table::open(path)?;
    let headers = table.headers().map_err(|error| wrong(1, error.to_string()))?;
    let Some(column) = headers.iter().position(|header| header == "wiki_id") else {
        return Err(wrong(1, "the header has no column `wiki_id`".to_owned()));
    };
    let mut ids = HashSet::new();
    let mut row = csv::StringRecord::new();
    while table.next_row(&mut row).map_err(|error| wrong(table.line(), error.to_string()))? {
        ids.extend(row.get(column).map(|id| id.trim_end_matches(".0").to_owned()));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn source(format: &str, more: &str) -> Source {
        toml::from_str(&format!(
            "label = \"x\"\nformat = \"{format}\"\npath = \"x\"\nlicence = \"none\"\n{more}"
        ))
        .unwrap()
    }

    fn read(source: &Source, name: &str, bytes: &[u8]) -> Result<Vec<Record>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs_err::write(&path, bytes).unwrap();
        fs_err::write(folder.path().join("topics.csv"), "title,wiki_id\nOtitis,12\n").unwrap();
        let records = super::super::records(source, &path, folder.path());
        let records = records.map_err(|error| error.to_string())?;
        let read: Result<Vec<Record>, CorpusError> = records.collect();
        read.map_err(|error| error.to_string().rsplit('/').next().unwrap().to_owned())
    }

    fn places(records: &[Record]) -> Vec<(&str, Form)> {
        records.iter().map(|record| (&*record.id, record.form)).collect()
    }

    #[test]
    fn own_rows_have_what_they_say_and_their_line_for_an_id() {
        let lines = "{\"text\": \"One.\", \"date\": \"2021-05-03\"}\n\n{\"id\": 7, \"title\": \"T\", \"text\": \"Two.\", \"url\": \"https://x\", \"more\": [1]}\n";
        let records = read(&source("jsonl", ""), "a.jsonl", lines.as_bytes()).unwrap();
        assert_eq!(places(&records), [("1", Form::Whole), ("7", Form::Whole)]);
        assert_eq!(
            (&*records[0].date, &*records[1].url, &*records[1].title),
            ("2021-05-03", "https://x", "T")
        );
        let table = "id,text,title\nq,\"a\nb\",T\n,c,\n";
        let records = read(&source("csv", ""), "a.csv", table.as_bytes()).unwrap();
        assert_eq!(places(&records), [("q", Form::Whole), ("4", Form::Whole)]);
        assert_eq!(records[0].text, "a\nb");
    }

    #[test]
    fn published_rows_are_found_under_their_own_names() {
        let row = "{\"id\": \"0000163-2\", \"source\": \"GHR\", \"question\": \"Q?\", \"answer\": \"A.\"}\n";
        let records = read(&source("medquad", ""), "a.jsonl", row.repeat(2).as_bytes()).unwrap();
        assert_eq!(
            places(&records),
            [("GHR_0000163_Sec2", Form::Whole), ("GHR_0000163_Sec2.2", Form::Whole)]
        );
        assert_eq!((&*records[0].title, &*records[0].text), ("Q?", "A."));
        let rows = "{\"id\": \"a\", \"source\": \"who\", \"clean_text\": \"x\"}\n{\"id\": \"b\", \"source\": \"icrc\", \"clean_text\": \"y\"}\n";
        let records =
            read(&source("guidelines", "only = [\"who\"]"), "a.jsonl", rows.as_bytes()).unwrap();
        assert_eq!(places(&records), [("a", Form::Whole)]);
        let rows = "{\"id\": \"Gray_0\", \"title\": \"Gray\", \"content\": \"x\"}\n{\"id\": \"Gray_1\", \"title\": \"Gray\", \"content\": \"y\"}\n";
        let records = read(&source("medrag", ""), "a.jsonl", rows.as_bytes()).unwrap();
        let passage = |paragraph, is_first| Form::Passage { paragraph, is_first };
        assert_eq!(places(&records), [("Gray", passage(0, true)), ("Gray", passage(1, false))]);
    }

    #[test]
    fn paragraphs_of_wikipedia_are_filtered_by_their_article() {
        let rows = "{\"id\": 0, \"title\": \"Otitis\", \"text\": \"x\", \"wiki_id\": 12, \"paragraph_id\": 3}\n{\"id\": 1, \"title\": \"Paris\", \"text\": \"y\", \"wiki_id\": 13, \"paragraph_id\": 0}\n";
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(rows.as_bytes()).unwrap();
        let source = source("wikipedia", "filter = \"topics.csv\"");
        let records = read(&source, "a.jsonl.gz", &packed.finish().unwrap()).unwrap();
        assert_eq!(places(&records), [("12", Form::Passage { paragraph: 3, is_first: true })]);
    }

    #[test]
    fn bad_rows_are_refused_by_file_and_place() {
        let refused = |name: &str, bytes: &[u8]| {
            let format = if name.ends_with("csv") { "csv" } else { "jsonl" };
            read(&source(format, ""), name, bytes).unwrap_err()
        };
        let good = b"{\"text\": \"One.\"}\n".as_slice();
        let after = |bad: &[u8]| [good, bad].concat();
        assert!(
            refused("a.jsonl", &after(b"{\"text\""))
                .starts_with("a.jsonl, line 2: is not a JSON object")
        );
        assert!(
            refused("a.jsonl", &after(b"[1]\n"))
                .starts_with("a.jsonl, line 2: is not a JSON object")
        );
        assert_eq!(
            refused("a.jsonl", &after(b"{\"text\": \"\xff\"}")),
            "a.jsonl is not UTF-8 at byte 27"
        );
        assert_eq!(
            refused("a.jsonl", &after(b"{\"text\": \"\\u0000\"}")),
            "a.jsonl, line 2: has a NUL character: it is no text"
        );
        assert_eq!(
            refused("a.jsonl", &after(b"\0\n")),
            "a.jsonl, line 2: has a NUL byte: it is no text"
        );
        assert_eq!(
            refused("a.jsonl", &after(b"{\"id\": \"x\"}")),
            "a.jsonl, line 2: has no text in `text`"
        );
        assert!(refused("a.csv", b"id\n1\n").contains("the header has no column `text`"));
        let long = format!("{{\"text\": \"{}\"}}", "x".repeat(LARGEST as usize + 1));
        assert_eq!(
            refused("a.jsonl", long.as_bytes()),
            "a.jsonl, line 1: is larger than the 64 MB of a document"
        );
    }
}
