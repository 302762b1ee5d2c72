//! Pages by reference count: free, in use, or unused but still found by the prefix index until room is needed.

use std::collections::BTreeSet;

use super::prefix::PrefixIndex;
use super::snapshots::Snapshots;

#[derive(Debug)]
pub struct BlockPool {
    references: Vec<u32>,
    free: Vec<u32>,
    /// Unused pages that the index knows, least recently used first.
    idle: BTreeSet<(u64, u32)>,
    last_used: Vec<u64>,
    clock: u64,
    pub index: PrefixIndex,
    /// States where its entries end; none for models that attend alone.
    pub snapshots: Snapshots,
}

impl BlockPool {
    pub fn new(pages: usize, slots: usize) -> BlockPool {
        BlockPool {
            references: vec![0; pages],
            free: (0..pages as u32).rev().collect(),
            idle: BTreeSet::new(),
            last_used: vec![0; pages],
            clock: 0,
            index: PrefixIndex::default(),
            snapshots: Snapshots::new(slots),
        }
    }

    /// Pages that can be had: free ones, and idle ones that the index would have to forget.
    pub fn available(&self) -> usize {
        self.free.len() + self.idle.len()
    }

    /// Pages that some sequence holds.
    pub fn in_use(&self) -> usize {
        self.references.len() - self.available()
    }

    /// A page for new content; the least recently used idle one goes if none is free.
    pub fn allocate(&mut self) -> Option<u32> {
        let page = match self.free.pop() {
            Some(page) => page,
            None => {
                let (_, page) = self.idle.pop_first()?;
                if let Some(entry) = self.index.remove_page(page) {
                    self.snapshots.forget(entry);
                }
                page
            }
        };
        self.references[page as usize] = 1;
        Some(page)
    }

    /// Takes one more reference to a page that the index found.
    pub fn share(&mut self, page: u32) {
        if self.references[page as usize] == 0 {
            self.idle.remove(&(self.last_used[page as usize], page));
        }
        self.references[page as usize] += 1;
    }

    /// Gives a sequence's pages back. The last comes first, so that a prefix outlives what follows it.
    pub fn release(&mut self, pages: &mut Vec<u32>) {
        while let Some(page) = pages.pop() {
            let references = &mut self.references[page as usize];
            *references -= 1;
            if *references > 0 {
                continue;
            }
            if self.index.contains_page(page) {
                self.clock += 1;
                self.last_used[page as usize] = self.clock;
                self.idle.insert((self.clock, page));
            } else {
                self.free.push(page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::prefix::EntryId;
    use super::*;
    use crate::ops::PAGE;

    const ROOT: EntryId = EntryId::Root(None);

    #[test]
    fn pages_are_shared_found_again_and_forgotten_oldest_first() {
        let mut pool = BlockPool::new(3, 0);
        let mut first: Vec<u32> = (0..3).map(|_| pool.allocate().unwrap()).collect();
        assert_eq!(pool.allocate(), None);
        let (a, b) = ([1; PAGE], [2; PAGE]);
        let parent = pool.index.insert(ROOT, &a, first[0]);
        pool.index.insert(parent, &b, first[1]);
        let pages = first.clone();
        pool.release(&mut first);
        assert_eq!(pool.available(), 3);

        let (entry, page) = pool.index.find(ROOT, &a).unwrap();
        assert_eq!((entry, page), (parent, pages[0]));
        pool.share(page);
        assert_eq!((pool.available(), pool.in_use()), (2, 1));
        // The page that was never entered goes first, then the end of the chain; the page in use stays.
        assert_eq!(pool.allocate(), Some(pages[2]));
        assert_eq!(pool.allocate(), Some(pages[1]));
        assert_eq!(pool.allocate(), None);
        assert!(pool.index.find(parent, &b).is_none());
        assert!(pool.index.find(ROOT, &a).is_some());
    }

    #[test]
    fn the_same_content_twice_keeps_the_first_page() {
        let mut pool = BlockPool::new(2, 0);
        let (one, two) = (pool.allocate().unwrap(), pool.allocate().unwrap());
        let entry = pool.index.insert(ROOT, &[5; PAGE], one);
        assert_eq!(pool.index.insert(ROOT, &[5; PAGE], two), entry);
        assert!(!pool.index.contains_page(two));
    }

    #[test]
    fn a_child_may_outlive_its_parents_page_where_another_sequence_holds_the_same() {
        let mut pool = BlockPool::new(3, 0);
        let pages: Vec<u32> = (0..3).map(|_| pool.allocate().unwrap()).collect();
        let (a, b) = ([1; PAGE], [2; PAGE]);
        // Two sequences computed the same first page; the second one alone has a second.
        let parent = pool.index.insert(ROOT, &a, pages[0]);
        assert_eq!(pool.index.insert(ROOT, &a, pages[1]), parent);
        pool.index.insert(parent, &b, pages[2]);
        pool.release(&mut vec![pages[0]]);
        // The first sequence's page is taken for something else: the child's entry cannot be reached any more,
        assert_eq!(pool.allocate(), Some(pages[0]));
        let again = pool.index.insert(ROOT, &a, pages[0]);
        assert!(again != parent && pool.index.find(again, &b).is_none());
        // and its page is still given up like any other.
        pool.release(&mut vec![pages[1], pages[2]]);
        assert_eq!(pool.available(), 2);
        assert_eq!(pool.allocate(), Some(pages[1]));
        assert_eq!(pool.allocate(), Some(pages[2]));
        assert!(!pool.index.contains_page(pages[2]));
    }
}
