//! The protocol on one note: detect, locate, correct (Algorithm 1), each by its own agents or several in one call (Table 11).

use super::meaning::{Opinion, read_correction, read_on};
use super::parse::{Located, Said, Wanted};
use super::settings::{Agent, Arbitration, Localisation, Settings};
use super::tags::section;
use super::texts::Texts;
use crate::data::{Item, Note};
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::record::{
    DetectionLine, FinishReason, Flag, ItemLine, LocalisationLine, Message, NoteLine, NoteStage,
    Parse, SettledBy, Stage,
};
use crate::systems::case::{Case, Step};
use crate::systems::reading::correction::change;
use crate::systems::{Opening, System, Task};

/// The protocol, with the prompts of a run.
pub struct MedGuards {
    settings: Settings,
    texts: Texts,
}

/// Who is asked for what: an agent of a role by its number, from 0.
#[derive(Clone, Copy)]
struct Errand {
    role: NoteStage,
    number: usize,
    stage: Stage,
    wanted: Wanted,
}

impl Errand {
    /// Of the first agent, whose answer is the last.
    fn of(role: NoteStage, wanted: Wanted) -> Errand {
        Errand { role, number: 0, stage: Stage::Final, wanted }
    }
}

impl System for MedGuards {
    /// Two calls on a note in which neither detector finds an error; at most seven with the paper's agents.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let mut line = case.open();
        match self.settings.agents {
            1 => self.detect_alone(&case, Wanted::Everything, &mut line)?,
            2 => {
                self.detect_alone(&case, Wanted::Place, &mut line)?;
                self.correct(&case, &mut line)?;
            }
            agents => {
                let (source, said) = self.detect(&case)?;
                line.flag = verdict(source, &said);
                line.detection = Some(detection_line(source, &said));
                match (line.flag.has_error(), agents) {
                    (true, 4) => self.locate_and_correct(&case, &mut line)?,
                    (true, _) => {
                        self.locate(&case, &mut line)?;
                        self.correct(&case, &mut line)?;
                    }
                    (false, _) => {}
                }
            }
        }
        line.calls = case.calls();
        Ok(line.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let note = item.note()?;
        let prompts = match self.settings.agents {
            1 => vec![self.texts.combined(Wanted::Everything, note)],
            2 => vec![self.texts.combined(Wanted::Place, note)],
            3 => self.texts.detect(note).into_iter().take(1).collect(),
            _ => self.texts.detect(note).to_vec(),
        };
        let openings = prompts.into_iter().enumerate();
        Some(openings.map(|(member, messages)| Opening { member, messages }).collect())
    }
}

/// Detection: does the note have an error?
impl MedGuards {
    fn detect(&self, case: &Case<'_, Note>) -> Result<Settled, PanelError> {
        let errand = Errand::of(NoteStage::Detection, Wanted::Label);
        let prompts = self.texts.detect(case.item);
        let said = self.ask_first(case, errand, &prompts)?;
        let [first, second] = said.as_slice() else { return Ok((SettledBy::Single, said)) };
        let is_agreed = flag(first).is_read() && flag(first) == flag(second);
        if is_agreed && !self.is_doubted(&said) {
            return Ok((SettledBy::Agreement, said));
        }
        let arbiter = self.texts.arbitrate_detection(case.item, &said);
        self.ask_third(case, errand, [&prompts[0], &arbiter], said)
    }

    /// Whether the arbiter of detection is asked though both detectors agree: both state a confidence below the bound.
    fn is_doubted(&self, said: &[Asked<Said>]) -> bool {
        let bound = f64::from(self.settings.arbitration_below) / 100.0;
        let is_low = |one: &Asked<Said>| one.value.confidence.is_some_and(|stated| stated < bound);
        self.settings.arbitration == Arbitration::Confidence && said.iter().all(is_low)
    }
}

/// Localisation: which sentence has the error?
impl MedGuards {
    fn locate(&self, case: &Case<'_, Note>, line: &mut NoteLine) -> Result<(), PanelError> {
        let (note, prompts) = (case.item, self.texts.locate(case.item));
        let errand = Errand::of(NoteStage::Localisation, Wanted::Place);
        let mut said = self.ask_first(case, errand, &prompts)?;
        let mut source = SettledBy::Single;
        if let [first, second] = said.as_slice() {
            source = SettledBy::Agreement;
            let opinions = [first, second].map(|one| Opinion::of(&self.settings, note, &one.value));
            let [one, other] = opinions.each_ref().map(Opinion::place);
            if one.is_none() || one != other {
                let meant = opinions.map(|opinion| opinion.shown(note));
                let arbiter = self.texts.arbitrate_localisation(note, &said, meant);
                (source, said) = self.ask_third(case, errand, [&prompts[0], &arbiter], said)?;
            }
        }
        self.take_place(note, line, source, &said);
        Ok(())
    }

    /// Fills in the agents' result. A note whose error no agent could locate stays flagged.
    fn take_place(
        &self,
        note: &Note,
        line: &mut NoteLine,
        source: SettledBy,
        said: &[Asked<Said>],
    ) {
        let opinions: Vec<Opinion> =
            said.iter().map(|one| Opinion::of(&self.settings, note, &one.value)).collect();
        let chosen = match source {
            SettledBy::Vote => {
                let places: Vec<_> = opinions.iter().map(Opinion::place).collect();
                let shared = majority(&places);
                let shared = shared.and_then(|one| places.iter().position(|p| *p == Some(one)));
                shared.or_else(|| places.iter().position(Option::is_some))
            }
            SettledBy::Arbitration => Some(2),
            SettledBy::Single | SettledBy::Agreement => Some(0),
        };
        let Opinion { located, sentence_id } = &opinions[chosen.unwrap_or(0)];
        line.sentence_id = *sentence_id;
        if let Some(id) = *sentence_id {
            line.sentence = note.sentences[id].clone();
        }
        line.exact_sentence_id = match (self.settings.localisation, located) {
            (Localisation::Hard, _) => *sentence_id,
            (Localisation::Soft, Located::Said(words)) => {
                let mut sentences = note.sentences.iter();
                sentences.position(|sentence| sentence.trim() == words.trim())
            }
            _ => None,
        };
        line.localisation = Some(LocalisationLine {
            source,
            agents: agents(said),
            opinions: opinions.iter().map(|one| one.located.words()).collect(),
            sentence_ids: opinions.iter().map(|one| one.sentence_id).collect(),
            confidences: confidences(said),
        });
    }
}

/// Correction: what should the sentence say? With eight agents, a second one checks the first one's answer.
impl MedGuards {
    /// A sentence that was not located cannot be corrected.
    fn correct(&self, case: &Case<'_, Note>, line: &mut NoteLine) -> Result<(), PanelError> {
        let Some(id) = line.sentence_id else { return Ok(()) };
        let (note, sentence) = (case.item, line.sentence.as_str());
        let ask = |number, prompt| {
            let errand = Errand::of(NoteStage::Correction, Wanted::Correction);
            let errand = Errand { number, ..errand };
            case.ask(self.call(case, errand, prompt), |text, _| {
                read_correction(&self.settings, note, id, text)
            })
        };
        let first = ask(0, self.texts.correct(note, sentence))?;
        let mut said = first.value;
        if self.settings.agents == 8 {
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
}

/// Structures in which one agent does several tasks in one call.
impl MedGuards {
    /// One agent detects and locates, and with [`Wanted::Everything`] corrects, too.
    fn detect_alone(
        &self,
        case: &Case<'_, Note>,
        wanted: Wanted,
        line: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let errand = Errand::of(NoteStage::Detection, wanted);
        let mut said = self.ask_alone(case, errand, self.texts.combined(wanted, case.item))?;
        if wanted == Wanted::Place {
            // Who names a sentence thereby says that there is an error.
            said.value.flag = match Opinion::of(&self.settings, case.item, &said.value).located {
                Located::Said(_) => Some(true),
                Located::Nothing => Some(false),
                Located::Malformed => None,
            };
        }
        line.flag = flag(&said);
        let said = [said];
        line.detection = Some(detection_line(SettledBy::Single, &said));
        match (line.flag.has_error(), wanted) {
            (false, _) => {}
            (true, Wanted::Place) => self.take_place(case.item, line, SettledBy::Single, &said),
            (true, _) => self.take_both(case.item, line, &said),
        }
        Ok(())
    }

    /// One agent names the sentence and corrects it.
    fn locate_and_correct(
        &self,
        case: &Case<'_, Note>,
        line: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let wanted = Wanted::PlaceAndCorrection;
        let errand = Errand::of(NoteStage::Localisation, wanted);
        let said = self.ask_alone(case, errand, self.texts.combined(wanted, case.item))?;
        self.take_both(case.item, line, &[said]);
        Ok(())
    }

    /// Fills in the location, and the correction where it has tags of its own.
    fn take_both(&self, note: &Note, line: &mut NoteLine, said: &[Asked<Said>; 1]) {
        self.take_place(note, line, SettledBy::Single, said);
        let [Asked { call, value }] = said;
        if line.sentence_id.is_some() {
            let is_tagged = section(&call.text, "correction").is_some();
            let is_change = |text: &String| change(text, line.sentence_id, note).is_some();
            line.correction = value.correction.clone().filter(|text| is_tagged && is_change(text));
            line.confidence = value.confidence;
        }
    }
}

/// How agents are asked.
impl MedGuards {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedGuards, PromptError> {
        Ok(MedGuards { settings: settings.clone(), texts: Texts::new(settings, prompts)? })
    }

    fn call(&self, case: &Case<'_, Note>, errand: Errand, prompt: Vec<Message>) -> Call {
        let Errand { role, number, stage, wanted } = errand;
        let (agent, shape) = (Agent { role, number }, self.texts.shape(wanted, case.item));
        let step = Step::new(stage, 0, role.name(), shape);
        case.call(&step, self.settings.member(agent), agent.name(), prompt)
    }

    fn reader(&self, wanted: Wanted, note: &Note) -> impl Fn(&str, FinishReason) -> (Said, Parse) {
        move |text, _| read_on(&self.settings, wanted, note, text)
    }

    /// Asks only the first agent of a stage.
    fn ask_alone(
        &self,
        case: &Case<'_, Note>,
        errand: Errand,
        prompt: Vec<Message>,
    ) -> Result<Asked<Said>, PanelError> {
        case.ask(self.call(case, errand, prompt), self.reader(errand.wanted, case.item))
    }

    /// Asks two agents independently; where each task has one agent, that one alone.
    fn ask_first(
        &self,
        case: &Case<'_, Note>,
        errand: Errand,
        prompts: &[Vec<Message>; 2],
    ) -> Result<Vec<Asked<Said>>, PanelError> {
        if self.settings.agents == 3 {
            return Ok(vec![self.ask_alone(case, errand, prompts[0].clone())?]);
        }
        let calls = [0, 1].map(|number| {
            let errand = Errand { number, stage: Stage::Initial, ..errand };
            self.call(case, errand, prompts[number].clone())
        });
        case.ask_all(calls, self.reader(errand.wanted, case.item))
    }

    /// Has a third agent settle what two have said: an arbiter who reads both replies, or a voter with the first one's prompt.
    fn ask_third(
        &self,
        case: &Case<'_, Note>,
        errand: Errand,
        [first, arbiter]: [&[Message]; 2],
        mut said: Vec<Asked<Said>>,
    ) -> Result<Settled, PanelError> {
        let (source, stage, prompt) = match self.settings.arbitration {
            Arbitration::Icl | Arbitration::Confidence => {
                (SettledBy::Arbitration, Stage::Final, arbiter)
            }
            Arbitration::Vote => (SettledBy::Vote, Stage::Initial, first),
        };
        let call = self.call(case, Errand { number: 2, stage, ..errand }, prompt.to_vec());
        said.push(case.ask(call, self.reader(errand.wanted, case.item))?);
        Ok((source, said))
    }
}

/// How a stage was settled, and by which replies.
type Settled = (SettledBy, Vec<Asked<Said>>);

/// Whether an agent finds an error.
fn flag(said: &Asked<Said>) -> Flag {
    Flag::on(said.call.basis(), said.value.flag)
}

fn detection_line(source: SettledBy, said: &[Asked<Said>]) -> DetectionLine {
    DetectionLine {
        source,
        agents: agents(said),
        flags: said.iter().map(|one| flag(one).said()).collect(),
        confidences: confidences(said),
    }
}

fn agents(said: &[Asked<Said>]) -> Vec<String> {
    said.iter().map(|one| one.call.agent.clone()).collect()
}

fn confidences(said: &[Asked<Said>]) -> Vec<Option<f64>> {
    said.iter().map(|one| one.value.confidence).collect()
}

/// The result of a detection: the last agent's, or of a vote the majority's. Without a majority it is the first one that could be read.
fn verdict(source: SettledBy, said: &[Asked<Said>]) -> Flag {
    let flags: Vec<Flag> = said.iter().map(flag).collect();
    let read = |flag: &Flag| flag.is_read().then_some(*flag);
    match source {
        SettledBy::Vote => {
            let votes: Vec<Option<Flag>> = flags.iter().map(read).collect();
            majority(&votes).or_else(|| flags.iter().find_map(read)).unwrap_or_default()
        }
        _ => flags.last().copied().unwrap_or_default(),
    }
}

/// What at least two of three say; `None`s agree with nobody.
fn majority<T: PartialEq + Copy>(said: &[Option<T>]) -> Option<T> {
    let is_shared = |one: &T| said.iter().filter(|other| **other == Some(*one)).count() > 1;
    said.iter().flatten().copied().find(is_shared)
}
