//! Slots for the states of recurrent layers: a running sequence has one, the others hold what states were where a prefix ended.
//!
//! A state cannot be cut as pages can: a prompt that begins as an earlier one goes on from the last place where a copy was kept.

use std::collections::{BTreeMap, HashMap};

use super::block_pool::BlockPool;
use super::prefix::EntryId;
use super::sequence::Sequence;
use crate::ops::PAGE;

#[derive(Debug)]
pub struct Snapshots {
    free: Vec<u32>,
    /// By the entry of the last page before: the slot, and when it was last of use.
    kept: HashMap<EntryId, (u32, u64)>,
    /// Least recently used first.
    order: BTreeMap<u64, EntryId>,
    clock: u64,
    /// From which slot to which states are to be copied before the next step, in this order.
    pub copies: Vec<(u32, u32)>,
}

impl Snapshots {
    pub fn new(slots: usize) -> Snapshots {
        Snapshots {
            free: (0..slots as u32).rev().collect(),
            kept: HashMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            copies: Vec::new(),
        }
    }

    pub fn contains(&self, entry: EntryId) -> bool {
        self.kept.contains_key(&entry)
    }

    /// A slot for a sequence that begins with the state after `entry`, if one is named: its copy is there.
    pub fn begin(&mut self, entry: Option<EntryId>) -> Option<u32> {
        // The copy that is begun with is not the one that makes room.
        let from = entry.and_then(|entry| self.touch(entry));
        let slot = self.allocate()?;
        self.copies.extend(from.filter(|from| *from != slot).map(|from| (from, slot)));
        Some(slot)
    }

    /// Takes the slot of a sequence that runs no more.
    pub fn end(&mut self, slot: &mut Option<u32>) {
        self.free.extend(slot.take());
    }

    /// Keeps what a sequence has in `slot` as the state after `entry`, where there is room.
    pub fn keep(&mut self, entry: EntryId, slot: u32) {
        if self.touch(entry).is_some() {
            return;
        }
        if let Some(copy) = self.allocate() {
            self.clock += 1;
            self.kept.insert(entry, (copy, self.clock));
            self.order.insert(self.clock, entry);
            self.copies.push((slot, copy));
        }
    }

    /// Gives up what no prompt can find any more.
    pub fn forget(&mut self, entry: EntryId) {
        if let Some((slot, used)) = self.kept.remove(&entry) {
            self.order.remove(&used);
            self.free.push(slot);
        }
    }

    fn touch(&mut self, entry: EntryId) -> Option<u32> {
        let (slot, used) = self.kept.get_mut(&entry)?;
        self.clock += 1;
        self.order.remove(used);
        self.order.insert(self.clock, entry);
        *used = self.clock;
        Some(*slot)
    }

    /// A free slot, or that of the least recently used copy.
    fn allocate(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            let (_, entry) = self.order.pop_first()?;
            let (slot, _) = self.kept.remove(&entry)?;
            return Some(slot);
        }
        self.free.pop()
    }
}

impl Sequence {
    /// Has a copy of its state kept after so many pages, which are still to be computed.
    pub fn mark(&mut self, pages: usize) {
        if let (true, Err(at)) = (pages * PAGE > self.computed, self.marks.binary_search(&pages)) {
            self.marks.insert(at, pages);
        }
    }

    /// How many of `rows` rows come before a copy of its state is to be kept.
    pub fn rows_to_mark(&self, rows: usize) -> usize {
        self.marks.first().map_or(rows, |mark| rows.min(mark * PAGE - self.computed))
    }

    /// Pages that begin this sequence and `other` alike, of those that it may take from others.
    pub fn pages_shared_with(&self, other: &Sequence) -> usize {
        if self.request.salt != other.request.salt {
            return 0;
        }
        let pages =
            self.tokens.as_chunks::<PAGE>().0.iter().zip(other.tokens.as_chunks::<PAGE>().0);
        pages.take(self.reusable_pages()).take_while(|(own, others)| own == others).count()
    }
}

/// Of a model with states, whether a running sequence is about to come to a state that `sequence` may begin with: it is to keep a copy, for
/// which this one waits. Else this one begins after the last of its pages where a copy was kept.
pub fn find_state(running: &mut [Sequence], pool: &mut BlockPool, sequence: &mut Sequence) -> bool {
    let has_copy = |entry: &EntryId| pool.snapshots.contains(*entry);
    let found = sequence.chain.iter().rposition(has_copy).map_or(0, |last| last + 1);
    let shared = running.iter_mut().map(|other| (sequence.pages_shared_with(other), other));
    let ahead = shared.filter(|(shared, other)| *shared > found && other.computed < shared * PAGE);
    if let Some((shared, other)) = ahead.max_by_key(|(shared, _)| *shared) {
        other.mark(shared);
        return true;
    }
    let known = sequence.chain.len();
    pool.release(&mut sequence.pages.split_off(found));
    sequence.chain.truncate(found);
    sequence.computed = found * PAGE;
    sequence.marks.clear();
    // Where prompts were found to part, others will; and the same prompt may come again.
    [known, sequence.reusable_pages()].into_iter().for_each(|pages| sequence.mark(pages));
    false
}
