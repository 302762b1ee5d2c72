//! What a build will take, measured before it is begun, and what bytes for numbers cost in hits.

use std::path::Path;
use std::time::{Duration, Instant};

use super::reading::{Read, read_sources};
use super::segments::EXACT;
use super::{BuildOptions, plan};
use crate::corpus::CorpusError;
use crate::corpus::embed::Embed;
use crate::corpus::store::layout::{CHUNK_BYTES, HEADER_BYTES, SCALES, VECTORS};
use crate::corpus::store::manifest::{BuiltSource, VectorForm};
use crate::encoder::Document;
use crate::ops::Cpu;
use crate::ops::mapped::MappedFile;
use crate::ops::vectors::{VectorRows, VectorType};
use crate::random::{SplitMix64, sample};

/// Chunks that are kept to measure with.
const SAMPLE: usize = 512;
/// How long the measurement takes.
const MEASURED: Duration = Duration::from_secs(2);
/// Rows that are searched for to compare two matrices.
const QUERIES: usize = 1000;
const COUNT: usize = 50;

/// What a build will give and take.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub sources: Vec<BuiltSource>,
    pub chunks: u64,
    /// Of all files together, postings apart.
    pub bytes: u64,
    pub characters: u64,
    /// Chunks a second on this device.
    pub chunks_per_second: f64,
    /// Some of the chunks, for counting tokens.
    pub sample: Vec<String>,
}

/// Reads and splits everything, embeds for two seconds, writes nothing.
pub fn estimate(options: &BuildOptions, encoder: &dyn Embed) -> Result<Estimate, CorpusError> {
    let manifest = plan(options, encoder)?;
    let mut sources = manifest.sources.clone();
    let (mut chunks, mut characters, mut kept) = (0_u64, 0, Vec::new());
    let mut random = SplitMix64::new(1);
    read_sources(&mut sources, &options.data, options.limit, &mut |read| {
        let Read::Chunk(chunk) = read else { return Ok(()) };
        chunks += 1;
        characters += chunk.text.chars().count() as u64;
        // Each chunk is as likely to be in the sample.
        let at = if kept.len() < SAMPLE { kept.len() } else { random.below(chunks) as usize };
        let one = (chunk.document.title.clone(), chunk.text);
        if at == kept.len() {
            kept.push(one);
        } else if let Some(old) = kept.get_mut(at) {
            *old = one;
        }
        Ok(())
    })?;
    let start = Instant::now();
    let mut embedded = 0;
    for batch in kept.chunks(16) {
        let documents: Vec<Document<'_>> =
            batch.iter().map(|(title, text)| Document { title, text }).collect();
        embedded += encoder.embed(&documents)?.len();
        if start.elapsed() >= MEASURED {
            break;
        }
    }
    let form = manifest.vectors;
    let full = form.full_dims.map_or(0, |dims| VectorType::F16.stride(dims));
    let row = CHUNK_BYTES + form.dtype.stride(form.dims) + full;
    let text_bytes: u64 = sources.iter().map(|source| source.text_bytes).sum();
    Ok(Estimate {
        chunks,
        bytes: text_bytes + chunks * row as u64,
        characters,
        chunks_per_second: embedded as f64 / start.elapsed().as_secs_f64().max(1e-9),
        sample: kept.into_iter().map(|(_, text)| text).collect(),
        sources,
    })
}

/// The mean share of the 50 best rows in f16 that are among the 50 best in bytes; `None` of an empty corpus.
pub fn overlap(
    directory: &Path,
    form: VectorForm,
    chunks: u64,
) -> Result<Option<f64>, CorpusError> {
    let map = |name: &str| MappedFile::open(&directory.join(name));
    let (exact, bytes, scales) = (map(EXACT)?, map(VECTORS)?, map(SCALES)?);
    let exact = VectorRows::new(after_header(&exact), &[], VectorType::F16, form.dims);
    let bytes = VectorRows::new(after_header(&bytes), &scales, VectorType::I8, form.dims);
    let (Some(exact), Some(bytes)) = (exact, bytes) else { return Ok(None) };
    if chunks == 0 {
        return Ok(None);
    }
    let cpu = Cpu::new(rayon::current_num_threads()).map_err(std::io::Error::other)?;
    let whole = 0..chunks as usize;
    let all = std::slice::from_ref(&whole);
    let (mut shared, mut found) = (0, 0);
    for row in sample(chunks as usize, QUERIES, 50) {
        let vector = exact.numbers(row);
        let best =
            |rows: &VectorRows<'_>| cpu.scan(rows, &[rows.query(&vector)], all, COUNT).remove(0);
        let (one, other) = (best(&exact), best(&bytes));
        found += one.len();
        shared += one.iter().filter(|hit| other.iter().any(|other| other.row == hit.row)).count();
    }
    Ok(Some(shared as f64 / found.max(1) as f64))
}

fn after_header(map: &MappedFile) -> &[u8] {
    map.get(HEADER_BYTES..).unwrap_or_default()
}
