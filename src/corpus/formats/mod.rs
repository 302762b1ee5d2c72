//! Published and own files to documents, one record after another: a file is never held whole but where it is one document.

mod folder;
#[cfg(test)]
mod linear;
mod rows;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use super::description::Source;
use super::store::layout::DocumentRecord;
use crate::diagnosis::Failure;
use crate::hub::matches;
use crate::outside;

/// Bytes of a document at most.
pub const LARGEST: u64 = 64 << 20;

/// How a source's files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceFormat {
    /// Objects with `text`, and `id`, `title`, `source`, `url` and `date` where there are any.
    Jsonl,
    /// MedQuAD's questions with answers, an object a line.
    Medquad,
    /// Meditron's guidelines (epfl-llm/guidelines): `clean_text`.
    Guidelines,
    /// Passages as MedRAG publishes them: `id`, `title`, `content`.
    Medrag,
    /// Paragraphs of Wikipedia as Cohere published them, `wiki_id`, `paragraph_id`, those of an article together.
    Wikipedia,
    /// A folder of StatPearls' `.nxml` articles.
    Statpearls,
    /// A folder of text and Markdown files.
    #[default]
    Folder,
}

impl SourceFormat {
    /// The endings of its files; each may be followed by `.gz`.
    fn endings(self) -> &'static [&'static str] {
        match self {
            SourceFormat::Statpearls => &["nxml"],
            SourceFormat::Folder => &["txt", "md"],
            _ => &["jsonl", "json"],
        }
    }
}

/// A document or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPart {
    pub document: DocumentRecord<String>,
    pub text: String,
    /// Whether a document begins with it; else it is more of the one before, under a title of its own.
    pub is_first: bool,
    /// The place in its document of what is a chunk as it is; other texts are split.
    pub paragraph: Option<u32>,
}

/// Records of one file; what comes after an error is none.
pub type Records<'a> = Box<dyn Iterator<Item = Result<DocumentPart, Failure>> + 'a>;

/// The files of a source in the data directory, in the order in which they are read.
///
/// # Errors
/// None is there; one that cannot be read as text; a link inside the source's folder.
pub fn inputs(source: &Source, data: &Path) -> Result<Vec<PathBuf>, Failure> {
    let root = data.join(&source.path);
    let mut named: Vec<(String, PathBuf)> = Vec::new();
    if root.is_file() {
        named.push((String::new(), root.clone()));
    } else if root.is_dir() {
        let mut files = Vec::new();
        list(&root, &mut files)?;
        named.extend(files.into_iter().map(|path| (outside::relative(&path, &root), path)));
        named.retain(|(name, _)| is_wanted(source, name));
        named.sort();
    }
    if named.is_empty() {
        return Err(Failure::missing(
            format!("source `{}` has no input at {}", source.label, root.display()),
            "name the folder that holds the inputs with --data-dir; docs/corpora.md says where from",
        ));
    }
    named.into_iter().map(|(_, path)| refuse(&path).map(|()| path)).collect()
}

/// The records of one input. `root` is the source's path in the data directory, `data` that directory.
///
/// # Errors
/// The file or the list of a filter cannot be opened.
pub fn records<'a>(source: &'a Source, path: &Path, data: &Path) -> Result<Records<'a>, Failure> {
    let root = data.join(&source.path);
    match source.format {
        SourceFormat::Folder => folder::records(path, &name(path, &root)),
        SourceFormat::Statpearls => folder::article(path),
        _ => rows::records(source, path, data),
    }
}

/// Of an input that cannot be one.
fn unfit(path: &Path, problem: &str) -> Failure {
    Failure::usage(
        format!("{} {problem}", path.display()),
        "docs/corpora.md says what a source may hold, and how other files become text",
    )
}

/// A file to be read, unpacked where it is compressed by gzip.
fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    let file = outside::open(path)?;
    let is_compressed = path.extension().is_some_and(|ending| ending == "gz");
    Ok(match is_compressed {
        true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))),
        false => Box::new(BufReader::with_capacity(1 << 16, file)),
    })
}

/// A text whose lines end with `\n` alone: blank lines are where paragraphs end.
fn plain_line_ends(text: String) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// What a document in a folder is called: its path inside, or its name where the folder is a file.
fn name(path: &Path, root: &Path) -> String {
    match outside::relative(path, root) {
        inside if inside.is_empty() => {
            path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        inside => inside,
    }
}

fn is_wanted(source: &Source, name: &str) -> bool {
    if !source.files.is_empty() {
        return source.files.iter().any(|pattern| matches(pattern, name));
    }
    let ending = ending(Path::new(name));
    // Files of a kind that cannot be read are refused by name rather than passed over.
    source.format.endings().contains(&&*ending)
        || (source.format == SourceFormat::Folder && UNREADABLE.contains(&&*ending))
}

/// The ending of a file's name in small letters; of a compressed one that before `.gz`.
fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain = Path::new(name.strip_suffix(".gz").unwrap_or(&name));
    plain.extension().unwrap_or_default().to_string_lossy().into_owned()
}

/// Endings of files that are no text.
const UNREADABLE: [&str; 5] = ["pdf", "html", "htm", "parquet", "docx"];

fn refuse(path: &Path) -> Result<(), Failure> {
    let ending = ending(path);
    match UNREADABLE.contains(&&*ending) {
        true => {
            let problem = format!("cannot be read: text is not extracted from .{ending} files");
            Err(unfit(path, &problem))
        }
        false => Ok(()),
    }
}

/// Every file below a folder. A link there would put into the corpus what lies outside of the folder.
///
/// # Errors
/// What is neither file nor folder, by its name.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            list(&path, files)?;
        } else if kind.is_file() {
            files.push(path);
        } else {
            let problem = match kind.is_symlink() {
                true => "is a link, and links inside a source are not followed",
                false => "is neither a file nor a folder",
            };
            return Err(unfit(&path, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        assert!(matches("*.jsonl", "a/b.jsonl") && matches("en/*.jsonl.gz", "en/000.jsonl.gz"));
        assert!(matches("a*b*c", "a-b-b-c") && matches("exact.txt", "exact.txt"));
        assert!(!matches("*.jsonl", "a.jsonl.gz") && !matches("exact", "exact.txt"));
        assert!(!matches("ab*ba", "aba"));
    }

    #[test]
    fn links_and_pipes_in_a_sources_folder_are_refused_by_name() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("ward");
        fs_err::create_dir_all(folder.join("inner")).unwrap();
        fs_err::create_dir(data.path().join("elsewhere")).unwrap();
        fs_err::write(data.path().join("secret.txt"), "Not of the ward.").unwrap();
        fs_err::write(folder.join("a.txt"), "Of the ward.").unwrap();
        let source = Source { path: "ward".to_owned(), ..Source::default() };
        assert_eq!(inputs(&source, data.path()).unwrap(), [folder.join("a.txt")]);
        let refused = |name: &str, problem: &str| {
            let error = inputs(&source, data.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("ward/{name} {problem}")), "{error}");
            fs_err::remove_file(folder.join(name)).unwrap();
        };
        for (name, target) in [("b.txt", "secret.txt"), ("inner/more", "elsewhere")] {
            std::os::unix::fs::symlink(data.path().join(target), folder.join(name)).unwrap();
            refused(name, "is a link");
        }
        let pipe = folder.join("c.txt");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        refused("c.txt", "is neither a file nor a folder");
        // The source itself may be a link: somebody named it.
        std::os::unix::fs::symlink(&folder, data.path().join("link")).unwrap();
        let named = Source { path: "link".to_owned(), ..source.clone() };
        assert_eq!(inputs(&named, data.path()).unwrap().len(), 1);
    }
}
