//! One note: detect, locate, correct (Algorithm 1).

use super::correction::Corrected;
use super::detection::verdict;
use super::localisation::Localised;
use super::parse::Located;
use super::settings::{Localisation, Settings, Structure};
use super::texts::{Prompt, Texts};
use crate::data::{Item, Note};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::{ItemLine, NoteLine};
use crate::systems::case::Case;
use crate::systems::config::Settings as _;
use crate::systems::{Opening, System, Task};

/// Agents who guard a note.
pub struct MedGuards {
    pub(super) settings: Settings,
    pub(super) texts: Texts,
}

impl MedGuards {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedGuards, PromptError> {
        Ok(MedGuards { settings: settings.clone(), texts: Texts::new(settings, prompts)? })
    }
}

impl System for MedGuards {
    /// Two calls on a note that both detectors take for right, seven at most with the paper's agents.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let mut record = case.open();
        match self.settings.structure {
            Structure::One => self.do_all(&case, &mut record)?,
            Structure::Two => {
                self.detect_and_locate(&case, &mut record)?;
                self.correct_what_was_located(&case, &mut record)?;
            }
            Structure::Three => {
                let detection = self.detect_alone(&case)?;
                record.flag = verdict(&detection);
                record.detection = Some(detection);
                if record.flag == Some(true) {
                    let place = self.locate_alone(&case)?;
                    self.take_place(case.item, &mut record, place);
                    self.correct_what_was_located(&case, &mut record)?;
                }
            }
            Structure::Four | Structure::Seven | Structure::Eight => {
                let detection = self.detect(&case)?;
                record.flag = verdict(&detection);
                record.detection = Some(detection);
                match (record.flag, self.settings.structure) {
                    (Some(true), Structure::Four) => self.locate_and_correct(&case, &mut record)?,
                    (Some(true), _) => {
                        let place = self.locate(&case)?;
                        self.take_place(case.item, &mut record, place);
                        self.correct_what_was_located(&case, &mut record)?;
                    }
                    _ => {}
                }
            }
        }
        record.calls = case.calls();
        Ok(record.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Note(note) = item else {
            return Vec::new();
        };
        let prompts = match self.settings.structure {
            Structure::One => vec![self.texts.do_all(note)],
            Structure::Two => vec![self.texts.detect_and_locate(note)],
            Structure::Three => vec![self.texts.detect(Prompt::A, note)],
            Structure::Four | Structure::Seven | Structure::Eight => {
                let prompts = [Prompt::A, Prompt::B];
                prompts.map(|one| self.texts.detect(one, note)).to_vec()
            }
        };
        let openings = prompts.into_iter().enumerate();
        openings.map(|(member, messages)| Opening::new(member, messages)).collect()
    }
}

impl MedGuards {
    /// An agent's place in the panel.
    ///
    /// # Errors
    /// An agent that the structure has not.
    pub(super) fn seat(&self, agent: &str) -> Result<usize, PanelError> {
        let mut seats = self.settings.seats().into_iter();
        let seat = seats.position(|seat| seat.agent == agent);
        seat.ok_or_else(|| PanelError::NoSeat { agent: agent.to_owned() })
    }

    fn correct_what_was_located(
        &self,
        case: &Case<'_, Note>,
        record: &mut NoteLine,
    ) -> Result<(), PanelError> {
        if record.sentence_id.is_some() {
            let corrected = self.correct(case, &record.sentence)?;
            self.take_correction(record, corrected);
        }
        Ok(())
    }

    /// A note whose error nobody could place stays flagged.
    pub(super) fn take_place(&self, note: &Note, record: &mut NoteLine, place: Localised) {
        let Localised { record: localisation, opinion } = place;
        record.localisation = Some(localisation);
        record.sentence_id = opinion.sentence_id;
        if let Some(id) = opinion.sentence_id {
            record.sentence = note.sentences[id].clone();
        }
        record.exact_sentence_id = match (self.settings.localisation, &opinion.located) {
            (Localisation::Hard, _) => opinion.sentence_id,
            (Localisation::Soft, Located::Said(words)) => {
                let mut sentences = note.sentences.iter();
                sentences.position(|sentence| sentence.trim() == words.trim())
            }
            _ => None,
        };
    }

    /// A sentence that was not located cannot be corrected.
    pub(super) fn take_correction(&self, record: &mut NoteLine, corrected: Corrected) {
        if record.sentence_id.is_some() {
            record.correction = corrected.text;
            record.confidence = corrected.confidence;
        }
    }
}
