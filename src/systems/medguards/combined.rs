//! Structures in which one agent does several tasks in one call (Table 11).

use serde_json::{Value, json};

use super::correction::Corrected;
use super::localisation::{Localised, localised};
use super::parse::{Located, correction, flag, read_located};
use super::protocol::MedGuards;
use super::{detection, localisation};
use crate::data::Note;
use crate::panel::PanelError;
use crate::record::{
    CallLine, DetectionLine, FinishReason, Message, NoteLine, Parse, Source, Stage,
};
use crate::systems::case::Case;
use crate::systems::decoding::Shape;
use crate::systems::step::Step;

impl MedGuards {
    /// One agent says all of it in one call.
    pub(super) fn do_all(
        &self,
        case: &Case<'_, Note>,
        record: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let prompt = (self.texts.do_all(case.item), self.texts.everything(case.item));
        let compat = self.settings.release_compat;
        let call = self.ask_combined(case, "det1", detection::PURPOSE, prompt, &|text, _| {
            let flag = flag(&outside(text), compat);
            let (located, parse) = read_located(text, compat);
            let record = json!({
                "thought": located["thought"],
                "flag": flag,
                "result": located["result"],
                "correction": correction(text, "correction", compat),
                "confidence": located["confidence"],
            });
            let parse = if flag.is_some() { parse } else { Parse::Fallback };
            (record, parse)
        })?;
        let flag = call.record["flag"].as_bool();
        record.flag = flag;
        record.detection = Some(alone(&call, flag));
        if flag == Some(true) {
            let place = self.placed(case.item, &call);
            self.take_place(case.item, record, place);
            self.take_correction(record, tagged_correction(&call));
        }
        Ok(())
    }

    /// One agent names the sentence, and thereby says whether there is an error.
    pub(super) fn detect_and_locate(
        &self,
        case: &Case<'_, Note>,
        record: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let note = case.item;
        let prompt = (self.texts.detect_and_locate(note), self.texts.result(note));
        let compat = self.settings.release_compat;
        let call = self.ask_combined(case, "det1", detection::PURPOSE, prompt, &|text, _| {
            read_located(text, compat)
        })?;
        let place = self.placed(note, &call);
        record.flag = match place.opinion.located {
            Located::Said(_) => Some(true),
            Located::Nothing => Some(false),
            Located::Malformed => None,
        };
        record.detection = Some(alone(&call, record.flag));
        if record.flag == Some(true) {
            self.take_place(note, record, place);
        }
        Ok(())
    }

    /// One agent names the sentence and corrects it.
    pub(super) fn locate_and_correct(
        &self,
        case: &Case<'_, Note>,
        record: &mut NoteLine,
    ) -> Result<(), PanelError> {
        let note = case.item;
        let shape = self.texts.place_and_correction(note);
        let prompt = (self.texts.locate_and_correct(note), shape);
        let compat = self.settings.release_compat;
        let call = self.ask_combined(case, "loc1", localisation::PURPOSE, prompt, &|text, _| {
            let (mut record, parse) = read_located(text, compat);
            record["correction"] = json!(correction(text, "correction", compat));
            (record, parse)
        })?;
        let place = self.placed(note, &call);
        self.take_place(note, record, place);
        self.take_correction(record, tagged_correction(&call));
        Ok(())
    }

    fn ask_combined(
        &self,
        case: &Case<'_, Note>,
        agent: &str,
        purpose: &'static str,
        (prompt, shape): (Vec<Message>, Shape),
        read: &dyn Fn(&str, FinishReason) -> (Value, Parse),
    ) -> Result<CallLine, PanelError> {
        let step = Step { stage: Stage::Final, round: 0, purpose, shape };
        case.ask(step.ask(self.seat(agent)?, agent, prompt), &|text, finish| read(text, finish))
    }

    fn placed(&self, note: &Note, call: &CallLine) -> Localised {
        let opinion = self.opinion(note, call);
        localised(Source::Single, std::slice::from_ref(call), vec![opinion], 0)
    }
}

fn alone(call: &CallLine, flag: Option<bool>) -> DetectionLine {
    DetectionLine {
        source: Source::Single,
        agents: vec![call.agent.clone()],
        flags: vec![flag],
        confidences: vec![call.record["confidence"].as_f64()],
    }
}

/// A correction that stands in tags of its own, or nowhere.
fn tagged_correction(call: &CallLine) -> Corrected {
    let has_tag = super::parse::section(&call.text, "correction").is_some();
    let correction = call.record["correction"].as_str().filter(|_| has_tag);
    Corrected {
        text: correction.map(str::to_owned),
        confidence: call.record["confidence"].as_f64(),
    }
}

/// A label stands outside the sentences.
fn outside(text: &str) -> String {
    super::parse::without(&super::parse::without(text, "result"), "correction")
}
