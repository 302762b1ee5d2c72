//! Corpora: descriptions, the files that they are built from, and the files of built ones.

use std::path::Path;

use wardround::corpus::description::{Description, Source};
use wardround::corpus::formats::{SourceFormat, records};
use wardround::corpus::split::{RecursiveSplitter, statpearls};
use wardround::corpus::store::layout::DocumentRecord;
use wardround::corpus::store::manifest::ManifestFile;
use wardround::ops::vectors::VectorRows;

use super::damage::{damaged, damaged_text, withstands};

#[test]
fn descriptions_of_corpora() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
    let good = ["medquad", "clinicalcorp", "statpearls"]
        .map(|name| std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap());
    withstands("corpora/*.toml", damaged_text(good), |text| {
        let _ = Description::parse(&text, Path::new("own.toml"));
    });
}

const JSONL: &str = "{\"id\": 1, \"title\": \"T\", \"text\": \"One.\", \"date\": \"2020\"}\n{\"text\": \"Two\\u00e9.\"}\n";
const WIKIPEDIA: &str =
    "{\"id\": 0, \"title\": \"Otitis\", \"text\": \"x\", \"wiki_id\": 12, \"paragraph_id\": 3}\n";
const MARKDOWN: &str = "# A\ntext\n## B ##\n```\n# no\n```\nmore\n";

#[test]
fn sources_of_corpora() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        (SourceFormat::Jsonl, "a.jsonl", JSONL),
        (
            SourceFormat::Medquad,
            "m.jsonl",
            "{\"id\": \"1-2\", \"source\": \"X\", \"question\": \"Q\", \"answer\": \"A\"}\n",
        ),
        (SourceFormat::Wikipedia, "w.jsonl", WIKIPEDIA),
        (
            SourceFormat::Medrag,
            "r.jsonl",
            "{\"id\": \"a_0\", \"title\": \"a\", \"content\": \"x\"}\n",
        ),
        (SourceFormat::Folder, "a.md", MARKDOWN),
        (SourceFormat::Folder, "a.txt", "Plain."),
    ];
    for (format, name, good) in files {
        let path = folder.path().join(name);
        let source = Source { format, path: name.to_owned(), ..Source::default() };
        withstands(name, damaged([good]), |bytes| {
            std::fs::write(&path, bytes).unwrap();
            if let Ok(records) = records(&source, &path, folder.path()) {
                for record in records.flatten() {
                    let splitter = RecursiveSplitter { size: 20, overlap: 7 };
                    assert!(
                        splitter
                            .split(&record.text)
                            .iter()
                            .all(|chunk| record.text.contains(chunk))
                    );
                }
            }
        });
    }
}

#[test]
fn articles_of_statpearls() {
    let good = include_str!("../goldens/corpus/article.nxml");
    withstands("article.nxml", damaged_text([good]), |text| {
        let _ = statpearls::split(&text);
    });
}

#[test]
fn files_of_built_corpora() {
    let mut documents = Vec::new();
    DocumentRecord { id: "a", title: "Title", url: "https://x", date: "2020" }
        .append(&mut documents);
    withstands("documents.bin", damaged([documents]), |bytes| {
        let mut rest = &*bytes;
        while let Some((_, length)) = DocumentRecord::read(rest) {
            rest = &rest[length..];
        }
    });
    withstands("vectors.bin", damaged([[1; 128]]), |bytes| {
        let rows = VectorRows::new(&bytes, 16);
        if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
            let _ = rows.numbers(0);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("corpus.toml");
    let good = "schema = 1\nname = \"a\"\nversion = \"0\"\ndocuments = 1\nchunks = 1\n[vectors]\ndtype = \"f16\"\ndims = 8\nnormalised = true\n[encoder]\nname = \"x\"\n[[source]]\ndocuments = 1\nchunks = 1\nrange = [0, 1]\n[source.description]\nlabel = \"a\"\nformat = \"jsonl\"\npath = \"a\"\nlicence = \"b\"\n\n[local]\nbuilt_at = \"\"\ndata = \"\"\nencoder = \"\"\n";
    std::fs::write(&path, good).unwrap();
    assert!(ManifestFile::read(&path).is_ok());
    withstands("corpus.toml", damaged([good]), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = ManifestFile::read(&path);
    });
}
