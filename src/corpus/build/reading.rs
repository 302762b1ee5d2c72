//! Sources to chunks, in the order of the description: always the same chunks from the same inputs.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use sha2::{Digest, Sha256};

use crate::corpus::formats::{self, DocumentPart};
use crate::corpus::store::layout::DocumentRecord;
use crate::corpus::store::manifest::BuiltSource;
use crate::diagnosis::Failure;
use crate::text::strip;

/// A chunk before it has a number.
#[derive(Clone, Debug)]
pub struct NewChunk {
    /// Under one title.
    pub document: Rc<DocumentRecord<String>>,
    /// Whether it is the first of this document's record.
    pub is_first: bool,
    pub paragraph: u32,
    pub source: u16,
    pub text: String,
}

/// Reads every source and hands on its chunks, one after another; counts go to `sources`.
///
/// # Errors
/// An input that is none, two documents of one id, and what `act` refuses.
pub fn read_sources(
    sources: &mut [BuiltSource],
    data: &Path,
    act: &mut dyn FnMut(NewChunk) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (number, source) in sources.iter_mut().enumerate() {
        let description = source.description.clone();
        let mut reading = Reading {
            source,
            number: number as u16,
            ids: HashSet::new(),
            current: None,
            act: &mut *act,
        };
        for path in formats::inputs(&description, data)? {
            for record in formats::records(&description, &path, data)? {
                reading.take(record?)?;
            }
        }
        reading.close();
    }
    Ok(())
}

struct Reading<'a> {
    source: &'a mut BuiltSource,
    number: u16,
    /// Half of each id's sum: enough to tell any two apart.
    ids: HashSet<u128>,
    current: Option<Current>,
    act: &'a mut dyn FnMut(NewChunk) -> Result<(), Failure>,
}

/// The document at hand.
struct Current {
    document: Rc<DocumentRecord<String>>,
    /// Whether the record of this title has a chunk.
    is_begun: bool,
    /// Of the whole document.
    chunks: u32,
}

impl Reading<'_> {
    fn take(&mut self, record: DocumentPart) -> Result<(), Failure> {
        let DocumentPart { document, text, is_first, paragraph } = record;
        if is_first {
            self.close();
        }
        if is_first || paragraph.is_some() {
            self.expect_new(&document.id, paragraph)?;
        }
        let document = Rc::new(document);
        match &mut self.current {
            Some(current) if current.document.title == document.title => {}
            Some(current) => (current.document, current.is_begun) = (document, false),
            None => self.current = Some(Current { document, is_begun: false, chunks: 0 }),
        }
        match paragraph {
            Some(_) if strip(&text).is_empty() => {}
            Some(_) => self.chunk(text, paragraph)?,
            None => {
                for chunk in self.source.description.splitter().split(&text) {
                    self.chunk(chunk.to_owned(), None)?;
                }
            }
        }
        Ok(())
    }

    fn chunk(&mut self, text: String, paragraph: Option<u32>) -> Result<(), Failure> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let chunk = NewChunk {
            document: Rc::clone(&current.document),
            is_first: !current.is_begun,
            paragraph: paragraph.unwrap_or(current.chunks),
            source: self.number,
            text,
        };
        current.is_begun = true;
        current.chunks += 1;
        self.source.chunks += 1;
        self.source.text_bytes += chunk.text.len() as u64;
        (self.act)(chunk)
    }

    /// The document at hand is over.
    fn close(&mut self) {
        match self.current.take().map(|current| current.chunks) {
            None => {}
            Some(0) => self.source.empty += 1,
            Some(_) => self.source.documents += 1,
        }
    }

    fn expect_new(&mut self, id: &str, paragraph: Option<u32>) -> Result<(), Failure> {
        let paragraph = paragraph.map(|paragraph| format!("#{paragraph}"));
        let id = format!("{id}{}", paragraph.unwrap_or_default());
        let half = Sha256::digest(&id).first_chunk().copied().unwrap_or_default();
        match self.ids.insert(u128::from_le_bytes(half)) {
            true => Ok(()),
            false => {
                let label = &self.source.description.label;
                let problem = format!("source `{label}` has two documents with the id `{id}`");
                Err(Failure::refused(problem))
            }
        }
    }
}
