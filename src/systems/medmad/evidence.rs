//! Passages beside a question or a brief (ours): one search by the question's text, the same passages for every agent.

use super::settings::{Evidence, Settings};
use crate::data::Question;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{Message, SearchPlace};
use crate::systems::case::Case;
use crate::systems::config::passage;
use crate::systems::quote::{Found, PASSAGES, quote};

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
            passage: passage(prompts, "medmad", true)?,
        })
    }

    /// What the prompts of `when` quote; `None` where they quote nothing.
    ///
    /// # Errors
    /// A corpus that cannot be searched.
    pub fn find(
        &self,
        case: &Case<'_, Question>,
        when: Evidence,
    ) -> Result<Option<Found>, PanelError> {
        if self.when != when {
            return Ok(None);
        }
        let place = SearchPlace { round: u32::from(when == Evidence::Brief), step: 0 };
        let query = case.item.question.trim();
        let found = case.search(place, query, self.passages, self.passages)?;
        Ok(Some(Found::new(&found, &self.passage)))
    }

    /// The messages that `write` makes of the section of passages, which is empty where nothing is quoted.
    pub fn beside(
        &self,
        found: Option<&Found>,
        write: impl FnOnce(&str) -> Vec<Message>,
    ) -> Vec<Message> {
        match found {
            None => write(""),
            Some(_) => {
                let section = fill(&self.section, &[("passages", PASSAGES.as_str())]);
                quote(write(&format!("\n\n{section}")), found)
            }
        }
    }

    /// Characters that evidence adds to a prompt at most; `None` without.
    pub fn longest(&self, passage_chars: usize) -> Option<usize> {
        let passage = self.passage.chars().count() + passage_chars;
        let section = self.section.chars().count();
        (self.when != Evidence::Off).then(|| section + self.passages * (passage + 2))
    }
}
