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
    Kpcs,
}

impl NoteColumn {
    /// In the order of Table 2.
    pub const ALL: [NoteColumn; 6] = [
        NoteColumn::Detection,
        NoteColumn::Localisation,
        NoteColumn::Rouge1,
        NoteColumn::BertScore,
        NoteColumn::Bleurt,
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
            NoteColumn::Kpcs => "KPCS",
        }
    }
}
