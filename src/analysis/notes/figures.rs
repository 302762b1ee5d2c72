//! All figures of a run on notes.

use serde::{Deserialize, Serialize};

use super::agents::{Confidence, Consensus, confidence, consensus};
use super::correction::Correction;
use super::detection::{Detection, Localisation};
use super::quality::CorrectionScorer;
use super::search::SearchFigures;
use super::stages::{StageCost, stage_costs};
use crate::analysis::outcomes::Outcomes;

/// The figures of a run on notes. Sections that need gold are `null` where no note has gold.
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
    /// Of a system that searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchFigures>,
}

impl NoteFigures {
    /// BERTScore, BLEURT and the measures derived from them are there where the scorer has their scores.
    pub fn of(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> NoteFigures {
        NoteFigures {
            n_graded: outcomes.items().len(),
            detection: Detection::of(outcomes),
            localisation: Localisation::of(outcomes),
            correction: Correction::of(outcomes, scorer),
            consensus: consensus(outcomes),
            confidence: confidence(outcomes),
            stages: stage_costs(outcomes),
            search: SearchFigures::of(outcomes),
        }
    }
}
