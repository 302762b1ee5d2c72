//! A corpus of texts whose vectors are at hand: a NumPy matrix, ids in its order and texts by id, as MedCPT publishes PubMed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value};

use super::build::reading::{NewChunk, NewDocument};
use super::build::segments::Segments;
use super::build::{PART, SEGMENT, finish, lock_file};
use super::description::Source;
use super::embed::Embed;
use super::formats::Format;
use super::npy::Matrix;
use super::store::manifest::{BuiltSource, InputFile, Local, Manifest, SCHEMA, VectorForm};
use super::{CorpusError, expect_file};
use crate::ops::mapped::MappedFile;
use crate::ops::vectors::VectorType;
use crate::outside;

#[derive(Clone, Debug, Args)]
pub struct ImportOptions {
    /// New or empty directory to write to
    #[arg(value_name = "DIRECTORY")]
    pub out: PathBuf,
    /// Vectors: a NumPy file of f32 or f16, one row per text
    #[arg(long, value_name = "FILE.npy")]
    pub vectors: PathBuf,
    /// Their ids: a JSON array, in the order of the rows
    #[arg(long, value_name = "FILE.json")]
    pub ids: PathBuf,
    /// Their texts: a JSON object from id to a text, or to an object with title and text as MedCPT publishes them
    #[arg(long, value_name = "FILE.json")]
    pub texts: PathBuf,
    /// Label of this source, in passages and for --sources
    #[arg(long, default_value = "import")]
    pub label: String,
    /// Its licence
    #[arg(long, default_value = "not stated")]
    pub licence: String,
    /// The encoder that made the vectors, which reads queries: its directory, or its card's name
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR|CARD")]
    pub encoder: PathBuf,
    /// Data type of the stored vectors
    #[arg(long = "keep", default_value = "f16", value_name = "TYPE", value_parser = vector_types())]
    pub dtype: VectorType,
    /// Also build a BM25 index, for --hybrid
    #[arg(long)]
    pub bm25: bool,
}

/// A parser of how vectors are kept.
pub fn vector_types() -> impl TypedValueParser<Value = VectorType> {
    let whole = PossibleValue::new("i8");
    let whole = whole.help("Whole numbers from −127 to 127 under one scale a row");
    let names = [PossibleValue::new("f16"), PossibleValue::new("f32"), whole];
    PossibleValuesParser::new(names).map(|name| match &*name {
        "f32" => VectorType::F32,
        "i8" => VectorType::I8,
        _ => VectorType::F16,
    })
}

/// Writes the corpus beside its place and moves it there when it is whole; where that fails nothing stays, and what was killed is
/// begun again by the next try.
///
/// # Errors
/// A directory that is taken; files that do not fit each other or the encoder; a vector that is none.
pub fn import(options: &ImportOptions, encoder: &dyn Embed) -> Result<(), CorpusError> {
    let out = &std::path::absolute(&options.out)?;
    if out.exists() && fs_err::read_dir(out)?.next().is_some() {
        return Err(CorpusError::Taken { path: out.clone() });
    }
    expect_file(&options.vectors)?;
    let map = MappedFile::open(&options.vectors)?;
    let matrix = Matrix::read(&map).map_err(|problem| wrong(&options.vectors, problem))?;
    if matrix.width != encoder.width() {
        return Err(CorpusError::Differs {
            what: "the width of vectors".to_owned(),
            one: format!("{} in {}", matrix.width, options.vectors.display()),
            other: format!("{} of the encoder", encoder.width()),
            hint: "name the encoder that made the vectors",
        });
    }
    let ids: Vec<Value> = read_json(&options.ids)?;
    if ids.len() != matrix.rows {
        let problem = format!("has {} ids for {} vectors", ids.len(), matrix.rows);
        return Err(wrong(&options.ids, problem));
    }
    let part = out.with_added_extension(PART);
    fs_err::create_dir_all(&part)?;
    let lock = lock_file(&part, out)?;
    for left in fs_err::read_dir(&part)? {
        fs_err::remove_file(left?.path())?;
    }
    let inside = ImportOptions { out: part.clone(), ..options.clone() };
    let written = write(&inside, encoder, &matrix, &ids)
        .and_then(|()| Ok(fs_err::rename(&part, out)?))
        .and_then(|()| Ok(outside::sync_directory(out.parent().unwrap_or(out))?));
    if written.is_err() && part.exists() {
        fs_err::remove_dir_all(&part)?;
    }
    drop(lock);
    written
}

fn write(
    options: &ImportOptions,
    encoder: &dyn Embed,
    matrix: &Matrix<'_>,
    ids: &[Value],
) -> Result<(), CorpusError> {
    let texts: Map<String, Value> = read_json(&options.texts)?;
    let form = VectorForm {
        dtype: options.dtype,
        dims: matrix.width,
        full_dims: None,
        normalised: encoder.is_normalised(),
        overlap_at_50: None,
    };
    let mut segments = Segments::open(&options.out, form)?;
    let description = Source::own(&options.label, Format::Jsonl, &options.texts, &options.licence);
    description.check(&options.texts)?;
    let mut source = BuiltSource::new(description);
    let (mut chunks, mut vectors, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    let (mut seen, mut longest) = (HashSet::new(), 0);
    for (row, id) in ids.iter().enumerate() {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        if !seen.insert(id.clone()) {
            return Err(CorpusError::RepeatedId { label: options.label.clone(), id });
        }
        let entry = texts
            .get(&id)
            .ok_or_else(|| wrong(&options.texts, format!("has no text of `{id}`")))?;
        let document = document(&id, entry);
        let text = text_of(entry);
        if text.trim().is_empty() {
            source.empty += 1;
            empty.push(format!("{}/{id}", options.label));
            continue;
        }
        longest = longest.max(document.title.chars().count() + text.chars().count());
        source.text_bytes += text.len() as u64;
        chunks.push(NewChunk {
            document: Rc::new(document),
            is_first: true,
            paragraph: 0,
            source: 0,
            text,
        });
        vectors.push(matrix.row(row));
        if chunks.len() == SEGMENT {
            segments.append(&chunks, &vectors, std::mem::take(&mut empty))?;
            (chunks, vectors) = (Vec::new(), Vec::new());
        }
    }
    if !chunks.is_empty() || !empty.is_empty() {
        segments.append(&chunks, &vectors, empty)?;
    }
    (source.documents, source.chunks) = (segments.chunks, segments.chunks);
    let input =
        |path: &PathBuf| InputFile::of(&options.label, path, path.to_string_lossy().into_owned());
    let manifest = Manifest {
        schema: SCHEMA,
        name: options.label.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        limit: None,
        documents: source.documents,
        chunks: source.chunks,
        longest_chunk_chars: longest,
        vectors: form,
        bm25: options.bm25,
        encoder: encoder.identity()?,
        sources: vec![source],
        inputs: [&options.vectors, &options.ids, &options.texts]
            .map(input)
            .into_iter()
            .collect::<Result<_, _>>()?,
        files: Vec::new(),
    };
    segments.finish()?;
    let local = Local::now(Path::new("."), &options.encoder)?;
    finish(&options.out, manifest, &local)
}

fn wrong(path: &Path, problem: String) -> CorpusError {
    CorpusError::Input { path: path.to_owned(), problem, hint: None }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, CorpusError> {
    expect_file(path)?;
    let file = std::io::BufReader::new(outside::open(path)?);
    serde_json::from_reader(file)
        .map_err(|error| wrong(path, format!("is not what is expected: {error}")))
}

/// The first of these fields that is there.
fn field(entry: &Value, names: &[&str]) -> String {
    let found = names.iter().find_map(|name| entry.get(name)?.as_str());
    found.unwrap_or_default().to_owned()
}

fn text_of(entry: &Value) -> String {
    entry.as_str().map_or_else(|| field(entry, &["text", "a"]), str::to_owned)
}

fn document(id: &str, entry: &Value) -> NewDocument {
    NewDocument {
        id: id.to_owned(),
        title: field(entry, &["title", "t"]),
        url: field(entry, &["url"]),
        date: dashed(&field(entry, &["date", "d"])),
    }
}

/// `20210503` as `2021-05-03`.
fn dashed(date: &str) -> String {
    let is_compact = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    match is_compact {
        true => format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]),
        false => date.to_owned(),
    }
}
