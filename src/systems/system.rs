//! The interface of every system.

use super::case::Task;
use crate::data::Item;
use crate::panel::PanelError;
use crate::record::ItemLine;

/// A system with its settings and prompts, ready to work on items.
pub trait System: Send + Sync {
    /// Works on an item, and returns its log line.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError>;

    /// Characters of an item's longest prompt where a quoted passage has at most so many; `None` where prompts quote no passages.
    fn longest_prompt(&self, _item: &Item, _passage_chars: usize) -> Option<usize> {
        None
    }
}
