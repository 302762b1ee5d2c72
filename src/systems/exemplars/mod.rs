//! Exemplars for few-shot prompts: notes with gold, how they are chosen for a note, and how prompts show them.

pub mod choice;
pub mod cluster;
pub mod leak;
pub mod nearest;
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
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::prompts::fill;
use crate::record::Flag;

/// The contents of `--exemplars` and related flags; empty where they were not given.
#[derive(Default)]
pub struct Exemplars {
    pub pool: Pool,
    /// The style in which the pool's reasons were asked for; `None` where there are none.
    pub style: Option<String>,
    pub vectors: Option<Vectors>,
    /// By the note's id: suspicious words of it that another model found.
    pub spans: Option<BTreeMap<String, String>>,
    /// IKIM's linear scorer of a sentence's vector: a weight for each component, and a constant.
    pub scorer: Option<Vec<f32>>,
    /// The similarity of a correction and its sentence, for Edinburgh's filter.
    pub likeness: Option<Likeness>,
    /// Exam questions, for WangLab's prompts.
    pub leak: Option<Leak>,
    /// Earlier runs over the same notes, for HSE NLP's prompts.
    pub experts: Vec<Expert>,
}

/// The similarity of two texts, from 0 to 1.
pub type Likeness = Box<dyn Fn(&str, &str) -> Result<f64, Failure> + Send + Sync>;

/// A finished run as an expert.
pub struct Expert {
    /// Its accuracy on other notes, as it was given.
    pub trust: Option<String>,
    /// By the note's id.
    pub opinions: BTreeMap<String, Opinion>,
}

/// A system's answer on a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    pub flag: Flag,
    pub sentence_id: Option<usize>,
    pub correction: Option<String>,
}

impl Opinion {
    pub fn in_words(&self) -> String {
        let place = match (self.flag.said(), self.sentence_id) {
            (None, _) => return "no opinion".to_owned(),
            (Some(false), _) => return "no error".to_owned(),
            (Some(true), None) => "an error".to_owned(),
            (Some(true), Some(id)) => format!("an error in sentence {id}"),
        };
        match &self.correction {
            Some(correction) => format!("{place}, which should be: {correction}"),
            None => place,
        }
    }
}

impl Exemplars {
    /// The experts' opinions of a note, each as `template` shows it; empty where there are no experts.
    pub fn opinions(&self, note: &Note, template: &str) -> String {
        let experts = (1_u32..).zip(&self.experts);
        let lines = experts.map(|(number, expert)| {
            let trust = expert.trust.as_deref().unwrap_or("not measured");
            let opinion =
                expert.opinions.get(&note.id).map_or("no opinion".to_owned(), Opinion::in_words);
            let values =
                [("number", &*number.to_string()), ("trust", trust), ("opinion", &opinion)];
            fill(template, &values)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
