//! The protocol on one note: detect, locate, correct (Algorithm 1), each by agents of its own or several in one call (Table 11).

use super::meaning::{read_correction, read_on};
use super::parse::{Located, Said, Wanted};
use super::settings::{Arbitration, Localisation, Settings, agent_name};
use super::tags::section;
use super::texts::Texts;
use crate::data::Note;
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::record::{
    DetectionLine, FinishReason, Flag, ItemLine, LocalisationLine, Message, NoteLine, NoteStage,
    SettledBy, Stage,
};
use crate::systems::case::{Case, Step};
use crate::systems::reading::correction::{change, is_cut_off};
use crate::systems::vote::most;
use crate::systems::{System, Task};

pub struct MedGuards {
    settings: Settings,
    texts: Texts,
}

impl System for MedGuards {
    /// Algorithm 1. Two calls on a note in which neither detector finds an error; at most seven with the paper's agents.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let mut line = task.note_line(case.item);
        self.detect(&case, &mut line)?;
        if line.flag.has_error() && self.settings.count(NoteStage::Localisation) > 0 {
            self.locate(&case, &mut line)?;
        }
        if let Some(id) = line.sentence_id
            && self.settings.count(NoteStage::Correction) > 0
        {
            self.correct(&case, id, &mut line)?;
        }
        line.calls = case.calls();
        Ok(ItemLine::Note(line))
    }
}

impl MedGuards {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedGuards, PromptError> {
        Ok(MedGuards { settings: settings.clone(), texts: Texts::new(settings, prompts)? })
    }

    /// Does the note have an error? Who does more in the same call has then located it, too, and may have corrected it.
    fn detect(&self, case: &Case<'_, Note>, line: &mut NoteLine) -> Result<(), PanelError> {
        let wanted = self.wanted(NoteStage::Detection);
        let (source, mut said) = self.settle(case, (NoteStage::Detection, wanted))?;
        if wanted == Wanted::Place {
            // Who names a sentence thereby says that there is an error.
            said[0].value.flag = match said[0].value.located {
                Located::Said(_) => Some(true),
                Located::Nothing => Some(false),
                Located::Malformed => None,
            };
        }
        line.flag = verdict(source, &said);
        line.detection = Some(DetectionLine {
            source,
            agents: agents(&said),
            flags: said.iter().map(|one| flag(one).said()).collect(),
            confidences: confidences(&said),
        });
        if line.flag.has_error() && wanted != Wanted::Label {
            self.take(case.item, line, wanted, (source, &said));
        }
        Ok(())
    }

    /// Which sentence has the error?
    fn locate(&self, case: &Case<'_, Note>, line: &mut NoteLine) -> Result<(), PanelError> {
        let wanted = self.wanted(NoteStage::Localisation);
        let (source, said) = self.settle(case, (NoteStage::Localisation, wanted))?;
        self.take(case.item, line, wanted, (source, &said));
        Ok(())
    }

    /// What should the sentence say? With eight agents, a second one checks the first one's answer.
    fn correct(
        &self,
        case: &Case<'_, Note>,
        id: usize,
        line: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let (note, sentence) = (case.item, line.sentence.as_str());
        let stage = (NoteStage::Correction, Wanted::Correction);
        let ask = |number, prompt| {
            case.ask(self.call(case, stage, (number, Stage::Final), prompt), |text, _| {
                read_correction(note, id, text)
            })
        };
        let first = ask(0, self.texts.correct(note, sentence))?;
        let mut said = first.value;
        if self.settings.count(NoteStage::Correction) > 1 {
            // What could not be read is passed on as it was said (App. A.7).
            let proposal = said.correction.as_deref().unwrap_or(first.call.text.trim());
            let second = ask(1, self.texts.correct_again(note, sentence, proposal))?.value;
            // Without another correction the first one's stays.
            if second.correction.is_some() {
                said = second;
            }
        }
        (line.correction, line.confidence) = (said.correction, said.confidence);
        Ok(())
    }

    /// Fills in the agents' place, and what an agent asked for both says in the tags of a correction. A note whose error no agent could
    /// locate stays flagged.
    fn take(
        &self,
        note: &Note,
        line: &mut NoteLine,
        wanted: Wanted,
        (source, said): (SettledBy, &[Asked<Said>]),
    ) {
        let chosen = match source {
            SettledBy::Vote => {
                let places: Vec<_> = said.iter().map(|one| one.value.place()).collect();
                let shared = majority(places.iter().flatten().copied());
                shared.and_then(|shared| places.iter().position(|one| *one == Some(shared)))
            }
            SettledBy::Arbitration => Some(2),
            SettledBy::Single | SettledBy::Agreement => Some(0),
        };
        let Said { located, sentence_id, .. } = &said[chosen.unwrap_or(0)].value;
        line.sentence_id = *sentence_id;
        if let Some(id) = *sentence_id {
            line.sentence = note.sentences[id].clone();
        }
        line.exact_sentence_id = match (self.settings.localisation, located) {
            (Localisation::Hard, _) => *sentence_id,
            (Localisation::Soft | Localisation::Likest, Located::Said(words)) => {
                let mut sentences = note.sentences.iter();
                sentences.position(|sentence| sentence.trim() == words.trim())
            }
            _ => None,
        };
        line.localisation = Some(LocalisationLine {
            source,
            agents: agents(said),
            opinions: said.iter().map(|one| one.value.located.words()).collect(),
            sentence_ids: said.iter().map(|one| one.value.sentence_id).collect(),
            confidences: confidences(said),
        });
        let [Asked { call, value }, ..] = said else { return };
        if wanted != Wanted::Place && line.sentence_id.is_some() {
            let is_tagged = section(&call.text, "correction").is_some();
            let is_change = |text: &String| {
                change(text, line.sentence_id, note).is_some() && !is_cut_off(text, note)
            };
            line.correction = value.correction.clone().filter(|text| is_tagged && is_change(text));
            line.confidence = value.confidence;
        }
    }

    /// What the agents of a stage are asked for: with the tasks of those that have none (Table 11).
    fn wanted(&self, stage: NoteStage) -> Wanted {
        let [locates, corrects] = [NoteStage::Localisation, NoteStage::Correction]
            .map(|other| self.settings.count(other) > 0);
        match (stage, locates, corrects) {
            (NoteStage::Correction, ..) => Wanted::Correction,
            (NoteStage::Detection, true, _) => Wanted::Label,
            (NoteStage::Detection, false, false) => Wanted::Everything,
            (NoteStage::Localisation, _, false) => Wanted::PlaceAndCorrection,
            (NoteStage::Detection | NoteStage::Localisation, ..) => Wanted::Place,
        }
    }

    /// What the agents of a stage say: one alone, or two independently, and a third where they do not agree: an arbiter who reads both
    /// replies, or a voter with the first one's prompt.
    fn settle(
        &self,
        case: &Case<'_, Note>,
        stage: (NoteStage, Wanted),
    ) -> Result<(SettledBy, Vec<Asked<Said>>), PanelError> {
        let (note, (role, wanted)) = (case.item, stage);
        let prompts = match stage {
            (NoteStage::Detection, Wanted::Label) => self.texts.detect(note).to_vec(),
            (NoteStage::Localisation, Wanted::Place) => self.texts.locate(note).to_vec(),
            _ => vec![self.texts.combined(wanted, note)],
        };
        let read =
            |text: &str, _: FinishReason| read_on(self.settings.localisation, wanted, note, text);
        if self.settings.count(role) == 1 {
            let call = self.call(case, stage, (0, Stage::Final), prompts[0].clone());
            return Ok((SettledBy::Single, vec![case.ask(call, read)?]));
        }
        let calls = prompts.iter().enumerate().map(|(number, prompt)| {
            self.call(case, stage, (number, Stage::Initial), prompt.clone())
        });
        let mut said = case.ask_all(calls, read)?;
        let [one, other] = [0, 1].map(|agent| &said[agent]);
        let is_agreed = match role {
            NoteStage::Detection => flag(one).is_read() && flag(one) == flag(other),
            _ => one.value.place().is_some() && one.value.place() == other.value.place(),
        };
        if is_agreed {
            return Ok((SettledBy::Agreement, said));
        }
        let (source, as_role, prompt) = match self.settings.arbitration {
            Arbitration::Icl => {
                let prompt = match role {
                    NoteStage::Detection => self.texts.arbitrate_detection(note, &said),
                    _ => self.texts.arbitrate_localisation(note, &said),
                };
                (SettledBy::Arbitration, Stage::Final, prompt)
            }
            Arbitration::Vote => (SettledBy::Vote, Stage::Initial, prompts[0].clone()),
        };
        said.push(case.ask(self.call(case, stage, (2, as_role), prompt), read)?);
        Ok((source, said))
    }

    /// The call of a stage's agent, by its number from 0.
    fn call(
        &self,
        case: &Case<'_, Note>,
        (role, wanted): (NoteStage, Wanted),
        (number, stage): (usize, Stage),
        prompt: Vec<Message>,
    ) -> Call {
        let step = Step::new(stage, 0, role.name(), self.texts.grammar(wanted, case.item));
        case.call(&step, self.settings.member(role, number), agent_name(role, number), prompt)
    }
}

/// Whether an agent finds an error.
fn flag(said: &Asked<Said>) -> Flag {
    Flag::on(said.call.basis(), said.value.flag)
}

fn agents(said: &[Asked<Said>]) -> Vec<String> {
    said.iter().map(|one| one.call.agent.clone()).collect()
}

fn confidences(said: &[Asked<Said>]) -> Vec<Option<f64>> {
    said.iter().map(|one| one.value.confidence).collect()
}

/// The result of a detection: the last agent's, or of a vote the majority's. Without a majority it is the first one that could be read.
fn verdict(source: SettledBy, said: &[Asked<Said>]) -> Flag {
    let mut flags = said.iter().map(flag);
    match source {
        SettledBy::Vote => majority(flags.filter(|flag| flag.is_read())).unwrap_or_default(),
        _ => flags.next_back().unwrap_or_default(),
    }
}

/// What at least two of three say, else the first; who said nothing agrees with nobody.
fn majority<T: PartialEq + Copy>(said: impl Iterator<Item = T>) -> Option<T> {
    most(&said.collect::<Vec<_>>()).map(|(said, _)| said)
}
