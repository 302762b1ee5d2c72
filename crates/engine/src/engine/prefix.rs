//! Which full pages of keys and values can be found again, by the tokens they and the pages before them hold.
//!
//! A tree: an entry is a page's tokens under the entry of the page before. The map compares tokens, never
//! hashes alone, so two prompts share a page only if they are the same up to its end.

use std::collections::HashMap;

use crate::ops::PAGE;

/// What a page lies under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryId {
    /// Nothing: it is a first page, seen by requests of the same salt alone.
    Root(Option<[u8; 16]>),
    /// An entry's name; it is never used again once the entry is gone.
    Entry(u64),
}

type Key = (EntryId, [u32; PAGE]);

#[derive(Debug, Default)]
pub struct PrefixIndex {
    entries: HashMap<Key, (EntryId, u32)>,
    /// The entry of each page that has one.
    keys: HashMap<u32, Key>,
    next: u64,
}

impl PrefixIndex {
    /// The entry and page that hold `tokens` after `parent`.
    pub fn find(&self, parent: EntryId, tokens: &[u32; PAGE]) -> Option<(EntryId, u32)> {
        self.entries.get(&(parent, *tokens)).copied()
    }

    /// Enters `page`, unless another page holds the same tokens already; gives the entry either way.
    pub fn insert(&mut self, parent: EntryId, tokens: &[u32; PAGE], page: u32) -> EntryId {
        let key = (parent, *tokens);
        if let Some((entry, _)) = self.entries.get(&key) {
            return *entry;
        }
        let entry = EntryId::Entry(self.next);
        self.next += 1;
        self.entries.insert(key, (entry, page));
        self.keys.insert(page, key);
        entry
    }

    pub fn contains_page(&self, page: u32) -> bool {
        self.keys.contains_key(&page)
    }

    /// Forgets `page`; gives its entry. Entries below its own become unreachable. LRU order evicts a sequence's later pages before earlier
    /// ones, so there are none, unless another sequence had computed the same page itself and went on from it; those
    /// pages cost cache hits only, and are evicted in their turn.
    pub fn remove_page(&mut self, page: u32) -> Option<EntryId> {
        let key = self.keys.remove(&page)?;
        self.entries.remove(&key).map(|(entry, _)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: EntryId = EntryId::Root(None);

    #[test]
    fn a_page_is_found_under_what_came_before_it_and_its_own_tokens() {
        let mut index = PrefixIndex::default();
        let first = index.insert(ROOT, &[1; PAGE], 10);
        let second = index.insert(first, &[2; PAGE], 11);
        assert_eq!(index.find(ROOT, &[1; PAGE]), Some((first, 10)));
        assert_eq!(index.find(first, &[2; PAGE]), Some((second, 11)));
        // The same tokens elsewhere, and others here.
        assert_eq!(index.find(ROOT, &[2; PAGE]), None);
        assert_eq!(index.find(second, &[2; PAGE]), None);
        let mut other = [1; PAGE];
        other[PAGE - 1] = 2;
        assert_eq!(index.find(ROOT, &other), None);
    }

    #[test]
    fn requests_of_different_salts_share_no_page() {
        let mut index = PrefixIndex::default();
        let salted = EntryId::Root(Some([7; 16]));
        let own = index.insert(salted, &[1; PAGE], 10);
        assert_eq!(index.find(ROOT, &[1; PAGE]), None);
        assert_eq!(index.find(EntryId::Root(Some([8; 16])), &[1; PAGE]), None);
        assert_ne!(index.insert(ROOT, &[1; PAGE], 11), own);
        assert_eq!(index.find(salted, &[1; PAGE]), Some((own, 10)));
    }

    #[test]
    fn a_page_that_was_computed_twice_is_entered_once() {
        let mut index = PrefixIndex::default();
        let entry = index.insert(ROOT, &[1; PAGE], 10);
        assert_eq!(index.insert(ROOT, &[1; PAGE], 11), entry);
        assert!(index.contains_page(10) && !index.contains_page(11));
        // The second page has no entry to lose.
        index.remove_page(11);
        assert_eq!(index.find(ROOT, &[1; PAGE]), Some((entry, 10)));
    }

    #[test]
    fn what_lay_under_a_forgotten_page_stays_lost_when_its_tokens_come_again() {
        let mut index = PrefixIndex::default();
        let first = index.insert(ROOT, &[1; PAGE], 10);
        index.insert(first, &[2; PAGE], 11);
        index.remove_page(10);
        assert!(!index.contains_page(10) && index.contains_page(11));
        assert_eq!(index.find(ROOT, &[1; PAGE]), None);
        let again = index.insert(ROOT, &[1; PAGE], 12);
        assert_ne!(again, first);
        assert_eq!(index.find(again, &[2; PAGE]), None);
        index.remove_page(11);
        assert!(!index.contains_page(11));
    }
}
