//! Documents to chunks: by size alone, or as MedRAG cuts articles of StatPearls.

mod recursive;
pub mod statpearls;

pub use recursive::RecursiveSplitter;
