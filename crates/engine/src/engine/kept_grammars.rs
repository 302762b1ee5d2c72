//! The compiled grammars that are kept: the most recently used ones, as long as they fit.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::EngineError;
use super::constraint::{CompiledGrammar, Grammar};

/// A panel asks under a few at a time, a run of notes under one or more a note.
const MOST: usize = 256;
/// What they may hold, all together; beyond it stays the one that is asked for.
const MOST_BYTES: usize = 256 << 20;

/// Filled by the first who asks for its grammar; others wait for that. A refusal is kept too.
pub type Slot = OnceLock<Result<CompiledGrammar, EngineError>>;

#[derive(Default)]
pub struct KeptGrammars {
    /// The most recently used one last.
    pub entries: Mutex<Vec<(Grammar, Arc<Slot>)>>,
}

impl KeptGrammars {
    /// The place of `grammar`, its old one where it is known. The least recently used ones make room.
    pub fn slot(&self, grammar: &Grammar) -> Arc<Slot> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().position(|(known, _)| known == grammar);
        let entry = known.map(|index| entries.remove(index));
        let entry = entry.unwrap_or_else(|| (grammar.clone(), Arc::default()));
        while entries.len() >= MOST || !entries.is_empty() && bytes(&entries) > MOST_BYTES {
            entries.remove(0);
        }
        let slot = entry.1.clone();
        entries.push(entry);
        slot
    }
}

/// What those that are compiled hold, beside the texts of all.
fn bytes(entries: &[(Grammar, Arc<Slot>)]) -> usize {
    let compiled = |slot: &Slot| match slot.get() {
        Some(Ok(compiled)) => compiled.bytes,
        _ => 0,
    };
    entries.iter().map(|(grammar, slot)| grammar.text().len() + compiled(slot)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::constraint::tests::{compiler, word};
    use super::*;

    fn is_kept(kept: &KeptGrammars, grammar: &Grammar) -> bool {
        kept.entries.lock().unwrap().iter().any(|(known, _)| known == grammar)
    }

    #[test]
    fn the_most_recently_used_ones_are_kept() {
        let kept = KeptGrammars::default();
        for index in 0..MOST {
            kept.slot(&word(index));
        }
        // The first is used again, so the second is the one that goes.
        kept.slot(&word(0));
        kept.slot(&word(MOST));
        assert_eq!(kept.entries.lock().unwrap().len(), MOST);
        let are_kept = [0, 1, 2, MOST].map(|index| is_kept(&kept, &word(index)));
        assert_eq!(are_kept, [true, false, true, true]);
    }

    #[test]
    fn what_they_hold_is_bounded_whatever_their_number() {
        let compiler = compiler(&[1]);
        let mut large = compiler.compile(&word(0)).unwrap();
        let kept = KeptGrammars::default();
        large.bytes = MOST_BYTES / 2 - 1000;
        for index in 0..4 {
            kept.slot(&word(index)).get_or_init(|| Ok(large.clone()));
        }
        let are_kept = [0, 1, 2, 3].map(|index| is_kept(&kept, &word(index)));
        assert_eq!(are_kept, [false, true, true, true]);
        // Texts count too, and one alone stays.
        kept.slot(&Grammar::Lark("x".repeat(MOST_BYTES + 1)));
        kept.slot(&word(9));
        assert_eq!(kept.entries.lock().unwrap().len(), 1);
    }
}
