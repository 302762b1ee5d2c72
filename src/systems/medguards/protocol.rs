//! One note: detect, locate, correct (Algorithm 1).

use super::correction::Corrected;
use super::detection::verdict;
use super::localisation::Localised;
use super::parse::Located;
use super::settings::{Localisation, Settings, Structure};
use super::texts::{Prompt, Texts};
use crate::data::Note;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::{Message, NoteLine};
use crate::systems::case::Case;

/// Agents who guard a note.
pub struct MedGuards {
    pub(super) settings: Settings,
    pub(super) texts: Texts,
}

impl MedGuards {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedGuards, PromptError> {
        Ok(MedGuards {
            settings: settings.clone(),
            texts: Texts::new(settings, prompts)?,
        })
    }

    /// Two calls on a note that both detectors take for right, seven at most with the paper's agents.
    ///
    /// # Errors
    /// When a call could not be made or recorded.
    pub fn check(&self, case: Case<'_, Note>) -> Result<NoteLine, PanelError> {
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
        Ok(record)
    }

    /// What is asked before anything was answered.
    pub fn opening(&self, note: &Note) -> Vec<(usize, Vec<Message>)> {
        match self.settings.structure {
            Structure::One => vec![(0, self.texts.do_all(note))],
            Structure::Two => vec![(0, self.texts.detect_and_locate(note))],
            Structure::Three => vec![(0, self.texts.detect(Prompt::A, note))],
            Structure::Four | Structure::Seven | Structure::Eight => vec![
                (0, self.texts.detect(Prompt::A, note)),
                (1, self.texts.detect(Prompt::B, note)),
            ],
        }
    }

    /// An agent's place in the panel.
    pub(super) fn seat(&self, agent: &str) -> usize {
        let seats = self.settings.seats();
        // Every structure asks its own agents alone.
        seats
            .iter()
            .position(|seat| seat.agent == agent)
            .unwrap_or(0)
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
        let Localised {
            record: localisation,
            opinion,
        } = place;
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
