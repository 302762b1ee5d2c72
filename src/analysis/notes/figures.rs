//! All figures of a run on notes.

use serde::{Deserialize, Serialize};

use super::confidence::{Confidence, confidence};
use super::consensus::{Consensus, consensus};
use super::correction::Correction;
use super::detection::{Detection, Localisation};
use super::quality::Gauge;
use super::reading::NotesReading;
use super::stages::{StageCost, stage_costs};

/// What a run on notes came to. Sections that the gold decides are `null` where no note has gold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoteFigures {
    /// Notes with gold.
    pub n_graded: usize,
    pub detection: Option<Detection>,
    pub localisation: Option<Localisation>,
    pub correction: Option<Correction>,
    pub consensus: Vec<Consensus>,
    pub confidence: Option<Confidence>,
    pub stages: Vec<StageCost>,
}

impl NoteFigures {
    /// BERTScore, BLEURT and what is made of them are there where the gauge has their scores.
    pub fn of(reading: &NotesReading<'_>, gauge: &Gauge) -> NoteFigures {
        NoteFigures {
            n_graded: reading.notes.len(),
            detection: Detection::of(reading),
            localisation: Localisation::of(reading),
            correction: Correction::of(reading, gauge),
            consensus: consensus(reading),
            confidence: confidence(reading),
            stages: stage_costs(reading),
        }
    }
}
