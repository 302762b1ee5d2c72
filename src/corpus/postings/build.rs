//! Making `bm25.bin` in memory that does not grow with the corpus: sorted runs of chunks on disk, merged once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use fs_err::File;

use super::{HEADER_BYTES, MAGIC, Term, idf, read_number, words, write_number};
use crate::corpus::CorpusError;
use crate::corpus::store::layout::{
    CHUNK_BYTES, CHUNKS, ChunkRecord, DOCUMENTS, DocumentRecord, POSTINGS, TEXTS,
};
use crate::ops::mapped::MappedFile;
use crate::outside;

/// Chunks of a run.
const RUN: usize = 1 << 16;
/// Where runs lie until they are merged.
const FOLDER: &str = "bm25.runs";

/// Makes the postings of a corpus whose texts are whole: of title and text of each chunk.
///
/// # Errors
/// Files that contradict each other; a full disk.
pub fn write(directory: &Path, chunks: usize) -> Result<(), CorpusError> {
    let map = |name: &str| MappedFile::open(&directory.join(name));
    let (texts, records, documents) = (map(TEXTS)?, map(CHUNKS)?, map(DOCUMENTS)?);
    let folder = directory.join(FOLDER);
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    fs_err::create_dir_all(&folder)?;
    let mut runs = Runs::new(folder.clone(), RUN);
    // Documents come in the order of their chunks.
    let (mut at, mut next, mut title) = (0, 0, String::new());
    let damaged = || CorpusError::Damaged {
        path: directory.join(DOCUMENTS),
        problem: "it contradicts chunks.bin".to_owned(),
    };
    for (number, bytes) in records.as_chunks::<CHUNK_BYTES>().0.iter().take(chunks).enumerate() {
        let record = ChunkRecord::from_bytes(bytes);
        while next <= u64::from(record.document) {
            let read = DocumentRecord::read(&documents[at..]);
            let (document, length) = read.ok_or_else(damaged)?;
            document.title.clone_into(&mut title);
            (at, next) = (at + length, next + 1);
        }
        let text = record.text(&texts).map_err(|problem| CorpusError::Damaged {
            path: directory.join(TEXTS),
            problem: format!("chunk {number} {problem}"),
        })?;
        runs.add(number as u32, words(&title).chain(words(text)))?;
    }
    runs.merge(&directory.join(POSTINGS))?;
    Ok(fs_err::remove_dir_all(&folder)?)
}

/// Postings that wait to be merged.
pub struct Runs {
    folder: PathBuf,
    /// Chunks of a run.
    size: usize,
    lengths: Vec<u32>,
    /// Of the run at hand: chunk and frequency.
    lists: BTreeMap<String, Vec<(u32, u32)>>,
    waiting: usize,
    runs: usize,
}

impl Runs {
    pub fn new(folder: PathBuf, size: usize) -> Runs {
        Runs { folder, size, lengths: Vec::new(), lists: BTreeMap::new(), waiting: 0, runs: 0 }
    }

    /// Takes the words of the next chunk.
    pub fn add(
        &mut self,
        chunk: u32,
        words: impl Iterator<Item = String>,
    ) -> Result<(), CorpusError> {
        let mut length = 0;
        for word in words {
            length += 1;
            let list = self.lists.entry(word).or_default();
            match list.last_mut() {
                Some((last, frequency)) if *last == chunk => *frequency += 1,
                _ => list.push((chunk, 1)),
            }
        }
        self.lengths.push(length);
        self.waiting += 1;
        match self.waiting == self.size {
            true => self.close_run(),
            false => Ok(()),
        }
    }

    fn close_run(&mut self) -> Result<(), CorpusError> {
        let mut file = BufWriter::new(outside::create(self.folder.join(self.runs.to_string()))?);
        for (word, list) in std::mem::take(&mut self.lists) {
            let mut bytes = Vec::new();
            for (chunk, frequency) in list {
                write_number(u64::from(chunk), &mut bytes);
                write_number(u64::from(frequency), &mut bytes);
            }
            file.write_all(&(word.len() as u32).to_le_bytes())?;
            file.write_all(&(bytes.len() as u32).to_le_bytes())?;
            file.write_all(word.as_bytes())?;
            file.write_all(&bytes)?;
        }
        file.into_inner().map_err(|error| error.into_error())?.sync_data()?;
        (self.waiting, self.runs) = (0, self.runs + 1);
        Ok(())
    }

    /// Writes the file of all runs.
    pub fn merge(mut self, to: &Path) -> Result<(), CorpusError> {
        if self.waiting > 0 {
            self.close_run()?;
        }
        let mut readers = Vec::new();
        for run in 0..self.runs {
            let file = BufReader::new(outside::open(self.folder.join(run.to_string()))?);
            readers.push(RunReader { run, file });
        }
        let part = |name: &str| self.folder.join(name);
        let mut terms = BufWriter::new(outside::create(part("terms"))?);
        let mut names = BufWriter::new(outside::create(part("names"))?);
        let mut lists = BufWriter::new(outside::create(part("lists"))?);
        let (mut count, mut name, mut list, mut idf_sum) = (0_u64, 0, 0, 0.0);
        // The least word first, and of equal words the earliest run.
        let mut heads = BinaryHeap::new();
        for reader in &mut readers {
            heads.extend(reader.next()?);
        }
        while let Some(Reverse((word, run, bytes))) = heads.pop() {
            let mut parts = vec![bytes];
            heads.extend(readers[run].next()?);
            while let Some(Reverse((_, run, bytes))) = pop_if_word(&mut heads, &word) {
                parts.push(bytes);
                heads.extend(readers[run].next()?);
            }
            let (mut merged, mut last, mut chunks) = (Vec::new(), 0, 0);
            for part in &parts {
                let mut rest = &**part;
                while let (Some(chunk), Some(frequency)) =
                    (read_number(&mut rest), read_number(&mut rest))
                {
                    write_number(chunk - last, &mut merged);
                    write_number(frequency, &mut merged);
                    (last, chunks) = (chunk, chunks + 1);
                }
            }
            terms.write_all(&Term { name, list, name_length: word.len(), chunks }.to_bytes())?;
            names.write_all(&word)?;
            lists.write_all(&merged)?;
            (name, list, count) = (name + word.len(), list + merged.len(), count + 1);
            idf_sum += idf(self.lengths.len(), chunks);
        }
        for file in [&mut terms, &mut names, &mut lists] {
            file.flush()?;
        }
        let total: u64 = self.lengths.iter().map(|length| u64::from(*length)).sum();
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        let mean_idf: f64 = idf_sum / count.max(1) as f64;
        let numbers = [self.lengths.len() as u64, count, name as u64, total, mean_idf.to_bits()];
        for (field, number) in header[8..].chunks_mut(8).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        let mut file = BufWriter::new(outside::create_public(to)?);
        file.write_all(&header)?;
        for length in &self.lengths {
            file.write_all(&length.to_le_bytes())?;
        }
        for name in ["terms", "names", "lists"] {
            std::io::copy(&mut outside::open(part(name))?, &mut file)?;
        }
        Ok(file.into_inner().map_err(|error| error.into_error())?.sync_all()?)
    }
}

/// A run's words in order.
struct RunReader {
    run: usize,
    file: BufReader<File>,
}

impl RunReader {
    fn next(&mut self) -> Result<Option<Head>, CorpusError> {
        let mut lengths = [0; 8];
        match self.file.read_exact(&mut lengths) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let length =
            |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| lengths[at + byte])) as usize;
        let (mut word, mut list) = (vec![0; length(0)], vec![0; length(4)]);
        self.file.read_exact(&mut word)?;
        self.file.read_exact(&mut list)?;
        Ok(Some(Reverse((word, self.run, list))))
    }
}

/// A run's head: word, run, list; the least comes out first.
type Head = Reverse<(Vec<u8>, usize, Vec<u8>)>;

/// The first head, where it is of this word.
fn pop_if_word(heads: &mut BinaryHeap<Head>, word: &[u8]) -> Option<Head> {
    match heads.peek() {
        Some(Reverse((next, ..))) if next == word => heads.pop(),
        _ => None,
    }
}
