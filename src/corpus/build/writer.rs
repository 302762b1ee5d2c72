//! Chunks into segments: those that are there already are passed over, the others embedded and appended.

use super::reading::{NewChunk, Read};
use super::segments::Segments;
use super::{Pace, SEGMENT};
use crate::corpus::CorpusError;
use crate::corpus::embed::Embed;
use crate::encoder::Document;

/// Chunks on their way into segments.
pub(super) struct Writer<'a> {
    pub(super) encoder: &'a dyn Embed,
    pub(super) pace: Pace,
    pub(super) tell: &'a mut dyn FnMut(u64),
    pub(super) segments: Segments,
    /// Chunks read so far, and those of sources that are not read again.
    pub(super) seen: u64,
    /// The number of the first source that is read.
    pub(super) first_new: u16,
    pub(super) waiting: Vec<NewChunk>,
    /// Documents without text that segments list and that were not met yet.
    pub(super) listed: usize,
    pub(super) empty: Vec<String>,
    pub(super) longest: usize,
}

impl Writer<'_> {
    /// The first `done` chunks are in segments already.
    pub(super) fn take(&mut self, read: Read, done: u64) -> Result<(), CorpusError> {
        match read {
            // Those that a segment lists come first again.
            Read::Empty(name) => match self.listed.checked_sub(1) {
                Some(left) => self.listed = left,
                None => self.empty.push(name),
            },
            Read::Chunk(mut chunk) => {
                chunk.source += self.first_new;
                if self.seen >= u64::from(u32::MAX) {
                    return Err(CorpusError::TooMany);
                }
                let title = &chunk.document.title;
                self.longest = self.longest.max(title.chars().count() + chunk.text.chars().count());
                self.seen += 1;
                if self.seen > done {
                    self.waiting.push(chunk);
                }
            }
        }
        match self.waiting.len() == SEGMENT {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), CorpusError> {
        if self.waiting.is_empty() && self.empty.is_empty() {
            return Ok(());
        }
        // Texts of like length together, so that batches are even.
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        order.sort_by_key(|index| self.waiting[*index].text.len());
        let mut vectors = vec![Vec::new(); self.waiting.len()];
        for batch in order.chunks(self.pace.batch.max(1)) {
            let document = |index: &usize| {
                let chunk = &self.waiting[*index];
                Document { title: &chunk.document.title, text: &chunk.text }
            };
            let documents: Vec<Document<'_>> = batch.iter().map(document).collect();
            for (index, vector) in batch.iter().zip(self.encoder.embed(&documents)?) {
                vectors[*index] = vector;
            }
            (self.tell)(self.segments.chunks + batch.len() as u64);
        }
        self.segments.append(&self.waiting, &vectors, std::mem::take(&mut self.empty))?;
        (self.tell)(self.segments.chunks);
        self.waiting.clear();
        Ok(())
    }
}
