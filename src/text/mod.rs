//! What is done with the sentences of a note: cut into words, searched, compared, aligned; nothing here knows a model or a file.

mod alignment;
mod arabic;
mod chinese;
mod ellipsis;
mod hidden;
mod keywords;
mod lcs;
#[cfg(test)]
mod linear;
mod pattern;
mod porter;
mod sequence_matcher;
pub mod spreadsheet;
mod words;

pub use crate::record::Language;
pub use alignment::{Match, align};
pub use arabic::normalise_arabic;
pub use chinese::chinese_words;
pub use ellipsis::ellipsis;
pub use hidden::{is_hidden, spell_hidden};
pub use keywords::{diff_keywords, split_keywords};
pub use lcs::lcs_length;
pub use pattern::Pattern;
pub use porter::porter_stem;
pub use sequence_matcher::{Block, Opcode, SequenceMatcher};
pub use words::{is_whitespace, split_words, strip};
