//! The protocol on one note: detect, locate, correct (Algorithm 1), each by its own agents or several in one call (Table 11).

use super::meaning::{place, read_correction, read_on};
use super::parse::{Located, Said, Wanted};
use super::settings::{Agent, Arbitration, Localisation, Settings, Structure};
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
use crate::systems::{Opening, System, Task};

/// The protocol, with the prompts of a run.
pub struct MedGuards {
    settings: Settings,
    texts: Texts,
}

/// What an arbiter is shown of an agent whose answer could not be read.
const UNREAD: &str = "(no sentence: the answer could not be read)";

/// Where one agent locates the error.
#[derive(Clone, Debug, PartialEq)]
struct Opinion {
    located: Located,
    /// `None` for NAN, and where nothing could be parsed.
    sentence_id: Option<usize>,
}

impl Opinion {
    /// What agents agree by: one sentence, or that there is none; `None` for a reply that could not be parsed, which agrees with no other.
    fn place(&self) -> Option<Option<usize>> {
        match self.located {
            Located::Malformed => None,
            _ => Some(self.sentence_id),
        }
    }
}

impl System for MedGuards {
    /// Two calls on a note in which neither detector finds an error; at most seven with the paper's agents.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?.as_written(self.settings.release_compat);
        let mut line = case.open();
        match self.settings.structure {
            Structure::One => self.do_all(&case, &mut line)?,
            Structure::Two => {
                self.detect_and_locate(&case, &mut line)?;
                self.correct(&case, &mut line)?;
            }
            structure => {
                let (source, said) = self.detect(&case)?;
                line.flag = verdict(source, &said);
                line.detection = Some(detection_line(source, &said));
                match (line.flag.has_error(), structure) {
                    (true, Structure::Four) => self.locate_and_correct(&case, &mut line)?,
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
        let prompts = match self.settings.structure {
            Structure::One => vec![self.texts.combined(Wanted::Everything, note)],
            Structure::Two => vec![self.texts.combined(Wanted::Place, note)],
            Structure::Three => self.texts.detect(note).into_iter().take(1).collect(),
            _ => self.texts.detect(note).to_vec(),
        };
        let openings = prompts.into_iter().enumerate();
        Some(openings.map(|(member, messages)| Opening { member, messages }).collect())
    }
}

/// Detection: does the note have an error?
impl MedGuards {
    fn detect(&self, case: &Case<'_, Note>) -> Result<Settled, PanelError> {
        let agree = |said: &[Asked<Said>]| {
            let [first, second] = [0, 1].map(|agent| flag(&said[agent]));
            first.is_read() && first == second && !self.is_doubted(said)
        };
        let arbitrate = |said: &[Asked<Said>]| self.texts.arbitrate_detection(case.item, said);
        let prompts = self.texts.detect(case.item);
        let stage = NoteStage::Detection;
        self.ask_until_settled(case, stage, Wanted::Label, prompts, agree, arbitrate)
    }
}

impl MedGuards {
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
        let (note, stage) = (case.item, NoteStage::Localisation);
        let prompts = self.texts.locate(note);
        let opinions = |said: &[Asked<Said>]| [0, 1].map(|agent| self.opinion(note, &said[agent]));
        let agree = |said: &[Asked<Said>]| {
            let [first, second] = opinions(said).map(|opinion| opinion.place());
            first.is_some() && first == second
        };
        let arbitrate = |said: &[Asked<Said>]| {
            let meant =
                opinions(said).map(|opinion| match (opinion.sentence_id, opinion.located) {
                    (Some(id), _) => note.sentences[id].clone(),
                    (None, Located::Nothing) => "NAN".to_owned(),
                    // The word of the published code, which an arbiter may take for a sentence.
                    (None, _) if self.settings.release_compat => "ERROR".to_owned(),
                    (None, _) => UNREAD.to_owned(),
                });
            self.texts.arbitrate_localisation(note, said, meant)
        };
        let (source, said) =
            self.ask_until_settled(case, stage, Wanted::Place, prompts, agree, arbitrate)?;
        self.take_place(note, line, source, &said);
        Ok(())
    }

    /// The sentence of the note that an agent means.
    fn opinion(&self, note: &Note, said: &Asked<Said>) -> Opinion {
        let mut located = said.value.located.clone();
        let sentence_id = match &located {
            Located::Said(words) => place(&self.settings, note, words),
            _ => None,
        };
        if sentence_id.is_none() && located != Located::Nothing {
            located = Located::Malformed;
        }
        Opinion { located, sentence_id }
    }

    /// Fills in the agents' result. A note whose error no agent could locate stays flagged.
    fn take_place(
        &self,
        note: &Note,
        line: &mut NoteLine,
        source: SettledBy,
        said: &[Asked<Said>],
    ) {
        let opinions: Vec<Opinion> = said.iter().map(|one| self.opinion(note, one)).collect();
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
        if line.sentence_id.is_none() {
            return Ok(());
        }
        let (note, sentence) = (case.item, line.sentence.as_str());
        let ask = |number, prompt| {
            let agent = Agent { role: NoteStage::Correction, number };
            let call = self.call(case, agent, Stage::Final, Wanted::Correction, prompt);
            case.ask(call, |text, _| read_correction(&self.settings, note, sentence, text))
        };
        let mut said = ask(0, self.texts.correct(note, sentence))?.value;
        if let (Structure::Eight, Some(proposal)) = (self.settings.structure, &said.correction) {
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
    /// One agent detects, locates and corrects.
    fn do_all(&self, case: &Case<'_, Note>, line: &mut NoteLine) -> Result<(), PanelError> {
        let prompt = self.texts.combined(Wanted::Everything, case.item);
        let said = self.ask_alone(case, NoteStage::Detection, Wanted::Everything, prompt)?;
        line.flag = flag(&said);
        let said = [said];
        line.detection = Some(detection_line(SettledBy::Single, &said));
        if line.flag.has_error() {
            self.take_both(case.item, line, &said);
        }
        Ok(())
    }

    /// One agent names the sentence, and thereby says whether there is an error.
    fn detect_and_locate(
        &self,
        case: &Case<'_, Note>,
        line: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let prompt = self.texts.combined(Wanted::Place, case.item);
        let mut said = self.ask_alone(case, NoteStage::Detection, Wanted::Place, prompt)?;
        said.value.flag = match self.opinion(case.item, &said).located {
            Located::Said(_) => Some(true),
            Located::Nothing => Some(false),
            Located::Malformed => None,
        };
        line.flag = flag(&said);
        let said = [said];
        line.detection = Some(detection_line(SettledBy::Single, &said));
        if line.flag.has_error() {
            self.take_place(case.item, line, SettledBy::Single, &said);
        }
        Ok(())
    }

    /// One agent names the sentence and corrects it.
    fn locate_and_correct(
        &self,
        case: &Case<'_, Note>,
        line: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let (stage, wanted) = (NoteStage::Localisation, Wanted::PlaceAndCorrection);
        let said = self.ask_alone(case, stage, wanted, self.texts.combined(wanted, case.item))?;
        self.take_both(case.item, line, &[said]);
        Ok(())
    }

    /// Fills in the location, and the correction where it has tags of its own.
    fn take_both(&self, note: &Note, line: &mut NoteLine, said: &[Asked<Said>; 1]) {
        self.take_place(note, line, SettledBy::Single, said);
        let [Asked { call, value }] = said;
        if line.sentence_id.is_some() {
            let is_tagged = section(&call.text, "correction").is_some();
            line.correction = value.correction.clone().filter(|_| is_tagged);
            line.confidence = value.confidence;
        }
    }
}

/// How agents are asked.
impl MedGuards {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedGuards, PromptError> {
        Ok(MedGuards { settings: settings.clone(), texts: Texts::new(settings, prompts)? })
    }

    fn call(
        &self,
        case: &Case<'_, Note>,
        agent: Agent,
        stage: Stage,
        wanted: Wanted,
        prompt: Vec<Message>,
    ) -> Call {
        let shape = self.texts.shape(wanted, case.item);
        let step = Step { stage, round: 0, purpose: agent.role.name(), shape };
        case.call(&step, self.settings.structure.member(agent), agent.name(), prompt)
    }

    fn reader(&self, wanted: Wanted, note: &Note) -> impl Fn(&str, FinishReason) -> (Said, Parse) {
        move |text, _| read_on(&self.settings, wanted, note, text)
    }

    /// Asks only the first agent of a stage.
    fn ask_alone(
        &self,
        case: &Case<'_, Note>,
        role: NoteStage,
        wanted: Wanted,
        prompt: Vec<Message>,
    ) -> Result<Asked<Said>, PanelError> {
        let call = self.call(case, Agent { role, number: 0 }, Stage::Final, wanted, prompt);
        case.ask(call, self.reader(wanted, case.item))
    }

    /// Asks two agents independently, and where `agree` does not hold a third: an arbiter who reads both replies, or a voter with the first one's
    /// prompt. Where each task has one agent, that one alone.
    fn ask_until_settled(
        &self,
        case: &Case<'_, Note>,
        role: NoteStage,
        wanted: Wanted,
        prompts: [Vec<Message>; 2],
        agree: impl Fn(&[Asked<Said>]) -> bool,
        arbitrate: impl Fn(&[Asked<Said>]) -> Vec<Message>,
    ) -> Result<Settled, PanelError> {
        if self.settings.structure == Structure::Three {
            let [prompt, _] = prompts;
            return Ok((SettledBy::Single, vec![self.ask_alone(case, role, wanted, prompt)?]));
        }
        let call = |number, stage, prompt: &[Message]| {
            self.call(case, Agent { role, number }, stage, wanted, prompt.to_vec())
        };
        let first = [0, 1].map(|number| call(number, Stage::Initial, &prompts[number]));
        let mut said = case.ask_all(first, self.reader(wanted, case.item))?;
        if agree(&said) {
            return Ok((SettledBy::Agreement, said));
        }
        let (source, third) = match self.settings.arbitration {
            Arbitration::Icl | Arbitration::Confidence => {
                (SettledBy::Arbitration, call(2, Stage::Final, &arbitrate(&said)))
            }
            Arbitration::Vote => (SettledBy::Vote, call(2, Stage::Initial, &prompts[0])),
        };
        said.push(case.ask(third, self.reader(wanted, case.item))?);
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
