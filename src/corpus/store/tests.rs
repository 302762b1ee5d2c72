//! Opening a corpus of a gigabyte of vectors, of which the disk holds nothing but holes; taking texts that were changed.

use std::path::Path;

use super::manifest::{MANIFEST, ManifestFile};
use super::*;
use crate::corpus::build::tests::Sources;
use crate::ops::vectors::stride;

const CHUNKS_THERE: u64 = 16 << 20;
/// Far less than the vectors, far more than a header with what the system reads ahead of it.
const MOST_BYTES: usize = 1 << 20;

/// Makes the corpus one of many chunks by holes behind its files.
fn inflate(directory: &Path) {
    let path = directory.join(MANIFEST);
    let ManifestFile { mut manifest, local, .. } = ManifestFile::read(&path).unwrap();
    manifest.chunks = CHUNKS_THERE;
    manifest.sources[1].range[1] = CHUNKS_THERE;
    let form = manifest.vectors;
    let rows = |dims: usize| HEADER_BYTES as u64 + CHUNKS_THERE * stride(dims) as u64;
    for file in &mut manifest.files {
        let dims = match &*file.name {
            VECTORS => form.dims,
            FULL_VECTORS => form.full_dims.unwrap(),
            _ => 0,
        };
        file.size_bytes = match &*file.name {
            VECTORS | FULL_VECTORS => rows(dims),
            CHUNKS => CHUNKS_THERE * CHUNK_BYTES as u64,
            _ => continue,
        };
        let path = directory.join(&file.name);
        let bytes = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        bytes.set_len(file.size_bytes).unwrap();
        if dims > 0 {
            let header = vector_header(dims, CHUNKS_THERE);
            std::io::Write::write_all(&mut { bytes }, &header).unwrap();
        }
    }
    let text = ManifestFile::new(manifest, local).unwrap().text().unwrap();
    fs_err::write(path, text).unwrap();
}

/// Bytes of this file that the process has in memory by its maps.
fn resident(path: &Path) -> usize {
    let path = path.canonicalize().unwrap();
    let maps = fs_err::read_to_string("/proc/self/smaps").unwrap();
    let mut after = maps.lines().skip_while(|line| !line.ends_with(path.to_str().unwrap()));
    let line = after.find_map(|line| line.strip_prefix("Rss:")).expect("the file is mapped");
    let kibibytes: usize = line.trim().trim_end_matches("kB").trim().parse().unwrap();
    kibibytes << 10
}

// Only Linux says what of a map is in memory.
#[cfg(target_os = "linux")]
#[test]
fn opening_a_corpus_reads_no_vectors() {
    let sources = Sources::new(20);
    let options = sources.options("out");
    drop(sources.build(&options));
    inflate(&options.out);
    let corpus = Corpus::open(&options.out).unwrap();
    assert_eq!(corpus.len() as u64, CHUNKS_THERE);
    for name in [VECTORS, FULL_VECTORS, CHUNKS] {
        let path = options.out.join(name);
        let held = resident(&path);
        assert!(held <= MOST_BYTES, "{name}: {held} of {}", fs_err::metadata(&path).unwrap().len());
    }
    // The measure sees what is read.
    let rows = 2 * MOST_BYTES / stride(8);
    let vectors = corpus.vectors().unwrap();
    assert!((0..rows).all(|row| vectors.numbers(row).len() == 8));
    assert!(resident(&options.out.join(VECTORS)) > MOST_BYTES);
}

#[test]
fn a_changed_text_is_an_error_of_its_chunk() {
    let sources = Sources::new(20);
    let options = sources.options("out");
    drop(sources.build(&options));
    let path = options.out.join(TEXTS);
    let mut texts = fs_err::read(&path).unwrap();
    texts[3] ^= 1;
    fs_err::write(&path, texts).unwrap();
    let corpus = Corpus::open(&options.out).unwrap();
    let problem = "is damaged: chunk 0 has another sum than chunks.bin says";
    let expected = format!("{} {problem}", path.display());
    assert_eq!(corpus.chunk(0).unwrap_err().to_string(), expected);
    assert!(corpus.name(0).is_ok() && corpus.chunk(1).is_ok());
}

/// A pipe would be waited for without end.
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let sources = Sources::new(5);
    let options = sources.options("out");
    drop(sources.build(&options));
    let path = options.out.join(TEXTS);
    fs_err::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let error = Corpus::open(&options.out).unwrap_err().to_string();
    assert_eq!(error, format!("{}: it is no file", path.display()));
}
