//! What every system can do: work on an item of its kind, and say what it asks first.

use super::case::Task;
use crate::data::Item;
use crate::panel::PanelError;
use crate::record::{ItemLine, Message};

/// A system with its settings and prompts, ready to work on items.
pub trait System: Send + Sync {
    /// Works on an item.
    ///
    /// # Errors
    /// When a call could not be made or recorded; an item of a kind that the system does not take.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError>;

    /// Characters of the longest prompt that an item can come to where a quoted passage has at most so many; `None` where prompts
    /// do not grow by what is found.
    fn longest_prompt(&self, _item: &Item, _passage_chars: usize) -> Option<usize> {
        None
    }

    /// The prompts that are known before anything was answered, on an item of this dataset; `None` for an item of another kind.
    fn opening(&self, dataset: &str, item: &Item) -> Option<Vec<Opening>>;
}

/// A prompt that is known before anything was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Index into the panel's members.
    pub member: usize,
    pub messages: Vec<Message>,
}
