//! The published systems, a file or folder each, with their protocols as straight-line code; and what they share.

pub mod base_llm;
pub mod case;
pub mod config;
pub mod decoding;
pub mod exemplars;
pub mod file;
pub mod form;
pub mod healthcareagent;
pub mod in_flight;
pub mod mdagents;
pub mod medagents;
pub mod medguards;
pub mod medmad;
pub mod medreflex;
pub mod messages;
pub mod opinion;
#[cfg(test)]
mod planted;
pub mod reading;
pub mod reconcile;
#[cfg(test)]
mod same_calls;
#[cfg(test)]
pub mod scripted;
pub mod settings;
pub mod table;
pub mod vote;
pub mod which;

pub use case::Task;
pub use config::{Slot, SystemConfig};
pub use table::SYSTEMS;
pub use which::Which;

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
