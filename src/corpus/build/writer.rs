//! Chunks into segments: those that are there already are passed over, the others embedded and appended.

use super::SEGMENT;
use super::reading::NewChunk;
use super::segments::Segments;
use crate::corpus::embed::Embed;
use crate::diagnosis::Failure;
use crate::encoder::Document;

/// Chunks on their way into segments.
pub(super) struct Writer<'a> {
    pub(super) encoder: &'a dyn Embed,
    /// Chunks that are handed to the encoder at once.
    pub(super) batch: usize,
    pub(super) tell: &'a mut dyn FnMut(u64) -> Result<(), Failure>,
    pub(super) segments: Segments,
    /// Chunks that segments held before.
    pub(super) done: u64,
    /// Chunks read so far.
    pub(super) seen: u64,
    pub(super) longest: usize,
    pub(super) waiting: Vec<NewChunk>,
}

impl Writer<'_> {
    pub(super) fn take(&mut self, chunk: NewChunk) -> Result<(), Failure> {
        if self.seen >= u64::from(u32::MAX) {
            let most = u32::MAX;
            return Err(Failure::refused(format!("a corpus holds {most} chunks at most")));
        }
        let title = &chunk.document.title;
        self.longest = self.longest.max(title.chars().count() + chunk.text.chars().count());
        self.seen += 1;
        if self.seen > self.done {
            self.waiting.push(chunk);
        }
        match self.waiting.len() == SEGMENT {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // Texts of like length together, so that batches are even.
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        order.sort_by_key(|index| self.waiting[*index].text.len());
        let mut vectors = vec![Vec::new(); self.waiting.len()];
        let mut embedded = self.segments.done.chunks;
        for batch in order.chunks(self.batch.max(1)) {
            let document = |index: &usize| {
                let chunk = &self.waiting[*index];
                Document { title: &chunk.document.title, text: &chunk.text }
            };
            let documents: Vec<Document<'_>> = batch.iter().map(document).collect();
            for (index, vector) in batch.iter().zip(self.encoder.embed(&documents)?) {
                vectors[*index] = vector;
            }
            embedded += batch.len() as u64;
            (self.tell)(embedded)?;
        }
        self.segments.append(&self.waiting, &vectors)?;
        self.waiting.clear();
        Ok(())
    }
}
