//! Passages beside a question or a brief (ours): one search by the question's text, the same passages for every agent.

use super::settings::{Evidence, Settings};
use crate::data::Question;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill, passages};
use crate::record::SearchPlace;
use crate::systems::case::Case;

/// What agents are shown of a corpus; of a run without evidence nothing.
#[derive(Clone, Debug)]
pub struct EvidenceTemplate {
    when: Evidence,
    passages: usize,
    section: String,
    passage: String,
}

impl EvidenceTemplate {
    pub fn new(prompts: &PromptSet, settings: &Settings) -> Result<EvidenceTemplate, PromptError> {
        Ok(EvidenceTemplate {
            when: settings.evidence,
            passages: settings.passages,
            section: prompts.get("medmad/evidence", &["passages"])?,
            passage: prompts.get("medmad/passage", &["text"])?,
        })
    }

    /// What stands below the prompts of `when`; empty where they have no evidence.
    ///
    /// # Errors
    /// A corpus that cannot be searched.
    pub fn find(&self, case: &Case<'_, Question>, when: Evidence) -> Result<String, PanelError> {
        if self.when != when {
            return Ok(String::new());
        }
        let place = SearchPlace { round: u32::from(when == Evidence::Brief), step: 0 };
        let query = case.item.question.trim();
        let found = case.search(place, query, self.passages, self.passages)?;
        let shown = passages(&self.passage, &found);
        Ok(format!("\n\n{}", fill(&self.section, &[("passages", &shown)])))
    }

    /// Characters that evidence adds to a prompt at most; `None` without.
    pub fn longest(&self, passage_chars: usize) -> Option<usize> {
        let passage = self.passage.chars().count() + passage_chars;
        let section = self.section.chars().count();
        (self.when != Evidence::Off).then(|| section + self.passages * (passage + 2))
    }
}
