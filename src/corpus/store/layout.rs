//! The bytes of a corpus's files: records of chunks and documents, the header of vectors. Little-endian throughout.

use sha2::{Digest, Sha256};

pub const TEXTS: &str = "texts.bin";
pub const CHUNKS: &str = "chunks.bin";
pub const DOCUMENTS: &str = "documents.bin";
pub const VECTORS: &str = "vectors.bin";
/// Vectors at full width, for reranking by embedding.
pub const FULL_VECTORS: &str = "full.bin";

/// Bytes of a chunk's record, of which two are zeros.
pub const CHUNK_BYTES: usize = 32;
/// Bytes before the first vector.
pub const HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"WRVECTOR";
const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// Of its text in `texts.bin`.
    pub offset: u64,
    pub length: u32,
    pub document: u32,
    /// Its place in its document, from 0.
    pub paragraph: u32,
    pub source: u16,
    /// The first bytes of its text's SHA-256.
    pub sum: [u8; 8],
}

impl ChunkRecord {
    pub fn to_bytes(self) -> [u8; CHUNK_BYTES] {
        let mut bytes = [0; CHUNK_BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.document.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.paragraph.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.source.to_le_bytes());
        bytes[24..].copy_from_slice(&self.sum);
        bytes
    }

    pub fn from_bytes(bytes: &[u8; CHUNK_BYTES]) -> ChunkRecord {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        ChunkRecord {
            offset: u64::from(word(0)) | u64::from(word(4)) << 32,
            length: word(8),
            document: word(12),
            paragraph: word(16),
            source: u16::from_le_bytes([bytes[20], bytes[21]]),
            sum: [0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[24 + byte]),
        }
    }

    /// Its text in the bytes of `texts.bin`, compared with its sum: whatever is shown or searched of a chunk is taken here.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence about the chunk.
    pub fn text(self, texts: &[u8]) -> Result<&str, &'static str> {
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(self.length as usize);
        let bytes = texts.get(start..end).ok_or("lies outside of it")?;
        if Sha256::digest(bytes)[..self.sum.len()] != self.sum {
            return Err("has another sum than chunks.bin says");
        }
        std::str::from_utf8(bytes).map_err(|_| "is no text")
    }
}

/// What stands before so many vectors; 0 of them while a corpus is built.
pub fn vector_header(dims: usize, rows: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    // Zeros are the type f16, the only one.
    bytes[16..20].copy_from_slice(&(dims as u32).to_le_bytes());
    bytes[24..32].copy_from_slice(&rows.to_le_bytes());
    bytes
}

/// What is known of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentRecord<S> {
    pub id: S,
    pub title: S,
    /// Empty where it has none.
    pub url: S,
    /// Empty where it has none.
    pub date: S,
}

impl<S: AsRef<str>> DocumentRecord<S> {
    /// Each field behind its length.
    pub fn append(&self, bytes: &mut Vec<u8>) {
        for field in [&self.id, &self.title, &self.url, &self.date] {
            let field: &str = field.as_ref();
            // A field is part of a record of at most 64 MB.
            bytes.extend((field.len() as u32).to_le_bytes());
            bytes.extend(field.as_bytes());
        }
    }
}

impl<'a> DocumentRecord<&'a str> {
    /// The record at the start of `bytes` and its length; `None` where it is cut short or no text.
    pub fn read(bytes: &'a [u8]) -> Option<(DocumentRecord<&'a str>, usize)> {
        let mut at = 0;
        let mut field = || {
            let length = bytes.get(at..)?.first_chunk().copied()?;
            let start = at + 4;
            at = start.checked_add(u32::from_le_bytes(length) as usize)?;
            std::str::from_utf8(bytes.get(start..at)?).ok()
        };
        let (id, title, url, date) = (field()?, field()?, field()?, field()?);
        Some((DocumentRecord { id, title, url, date }, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back() {
        let record = ChunkRecord {
            offset: 1 << 40 | 7,
            length: 1000,
            document: 3,
            paragraph: 9,
            source: 513,
            sum: *b"abcdefgh",
        };
        assert_eq!(ChunkRecord::from_bytes(&record.to_bytes()), record);
        let document = DocumentRecord { id: "a", title: "Über", url: "", date: "2021" };
        let mut bytes = Vec::new();
        document.append(&mut bytes);
        assert_eq!(DocumentRecord::read(&bytes), Some((document, bytes.len())));
        assert_eq!(DocumentRecord::read(&bytes[..bytes.len() - 1]), None);
    }
}
