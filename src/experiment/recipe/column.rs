//! The columns of MedGuards' tables, by which recipes name the paper's figures on notes.

use serde::{Deserialize, Serialize};

/// A column; recipes call it by its serialised name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteColumn {
    Detection,
    Localisation,
    Rouge1,
    BertScore,
    Bleurt,
    /// The mean of ROUGE-1, BERTScore and BLEURT, which the shared task is ranked by.
    Aggregate,
    Kpcs,
}

impl NoteColumn {
    /// In the order of Table 2, the aggregate behind what it is made of.
    pub const ALL: [NoteColumn; 7] = [
        NoteColumn::Detection,
        NoteColumn::Localisation,
        NoteColumn::Rouge1,
        NoteColumn::BertScore,
        NoteColumn::Bleurt,
        NoteColumn::Aggregate,
        NoteColumn::Kpcs,
    ];

    /// As people write it.
    pub fn label(self) -> &'static str {
        match self {
            NoteColumn::Detection => "detection",
            NoteColumn::Localisation => "localisation",
            NoteColumn::Rouge1 => "ROUGE-1",
            NoteColumn::BertScore => "BERTScore",
            NoteColumn::Bleurt => "BLEURT",
            NoteColumn::Aggregate => "AggregateScore",
            NoteColumn::Kpcs => "KPCS",
        }
    }
}
