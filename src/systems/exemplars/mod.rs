//! Exemplars: notes with gold that prompts show beside the note at hand; which are chosen, and how they are written.

pub mod choice;
pub mod cluster;
pub mod leak;
pub mod pool;
pub mod prompt;
pub mod reply;
pub mod terms;
pub mod vectors;

use std::collections::BTreeMap;

pub use choice::{Choice, Kinds, Ranking};
pub use pool::{Exemplar, Pool};
pub use vectors::Encode;

use self::leak::Leak;
use self::vectors::Vectors;
use crate::diagnosis::Failure;

/// Everything that `--exemplars` and the flags beside it name, read; empty where they were not given.
#[derive(Default)]
pub struct Exemplars {
    pub pool: Pool,
    /// In what style the pool's reasons were asked for; `None` where there are none.
    pub style: Option<String>,
    pub vectors: Option<Vectors>,
    /// By the note's id: the words of it that a reader of another kind found suspicious.
    pub spans: Option<BTreeMap<String, String>>,
    /// IKIM's linear scorer of a sentence's vector: a weight for each of its numbers, and a constant.
    pub scorer: Option<Vec<f32>>,
    /// How alike a correction is to its sentence, for Edinburgh's filter.
    pub likeness: Option<Likeness>,
    /// Exam questions, for WangLab's search among them.
    pub leak: Option<Leak>,
    /// Runs over the same notes, with how good each was elsewhere.
    pub experts: Vec<Expert>,
}

/// How alike two texts are, from 0 to 1.
pub type Likeness = Box<dyn Fn(&str, &str) -> Result<f64, Failure> + Send + Sync>;

/// A finished run as an expert.
pub struct Expert {
    /// The share of notes that it judged rightly on other notes, as it was given.
    pub trust: Option<String>,
    /// By the note's id.
    pub opinions: BTreeMap<String, Opinion>,
}

/// What a run found in a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    pub flag: Option<bool>,
    pub sentence_id: Option<usize>,
    pub correction: Option<String>,
}
