//! One note, one model: asked once, and once more where its answer cannot be read.

use super::parse::{Reading, read};
use super::settings::Settings;
use crate::data::{Item, Note};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::Grammar;
use crate::record::{DetectionLine, ItemLine, LocalisationLine, Message, Source, Stage};
use crate::systems::case::messages;
use crate::systems::form::MAX_CHAR_BYTES;
use crate::systems::step::Step;
use crate::systems::text::numbered;
use crate::systems::{Opening, System, Task};

/// The one seat's agent.
pub const AGENT: &str = "solo";
/// How often a model is asked.
pub const TRIES: u32 = 2;

/// A model alone with a note.
pub struct BaseLlm {
    settings: Settings,
    prompt: String,
}

impl BaseLlm {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<BaseLlm, PromptError> {
        let name = format!("base_llm/prompt-{}.txt", settings.prompt);
        Ok(BaseLlm { settings: settings.clone(), prompt: prompts.get(&name, &[])?.to_owned() })
    }
}

impl System for BaseLlm {
    /// A note on which the model says nothing readable counts as right, as it does for MEDEC.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let note = case.item;
        let mut record = case.open();
        let mut reading = Reading::Unreadable;
        for sample in 0..TRIES {
            let mut ask = self.step(note).ask(0, AGENT, self.messages(note));
            ask.sample = sample;
            let call = case.ask(ask, &|text, _| self.read(text, note).record())?;
            reading = self.read(&call.text, note);
            if reading != Reading::Unreadable {
                break;
            }
        }
        let flag = match &reading {
            Reading::Correct => Some(false),
            Reading::Wrong { .. } => Some(true),
            Reading::Unreadable => None,
        };
        record.flag = Some(flag == Some(true));
        record.detection = Some(DetectionLine {
            source: Source::Single,
            agents: vec![AGENT.to_owned()],
            flags: vec![flag],
            confidences: vec![None],
        });
        if let Reading::Wrong { sentence_id, correction } = reading {
            record.sentence = note.sentences[sentence_id].clone();
            record.sentence_id = Some(sentence_id);
            record.exact_sentence_id = Some(sentence_id);
            record.correction = Some(correction).filter(|text| !text.is_empty());
            record.localisation = Some(LocalisationLine {
                source: Source::Single,
                agents: vec![AGENT.to_owned()],
                opinions: vec![sentence_id.to_string()],
                sentence_ids: vec![Some(sentence_id)],
                confidences: vec![None],
            });
        }
        record.calls = case.calls();
        Ok(record.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Vec<Opening> {
        let Item::Note(note) = item else {
            return Vec::new();
        };
        vec![Opening::new(0, self.messages(note))]
    }
}

impl BaseLlm {
    fn messages(&self, note: &Note) -> Vec<Message> {
        messages("", format!("{}\n\n{}", self.prompt, numbered(note)))
    }

    fn read(&self, text: &str, note: &Note) -> Reading {
        read(text, note.sentences.len(), self.settings.release_compat)
    }

    fn step(&self, note: &Note) -> Step {
        let ids: Vec<String> = (0..note.sentences.len()).map(|id| id.to_string()).collect();
        let lengths = note.sentences.iter().map(|one| one.chars().count());
        let chars = lengths.max().unwrap_or(0) + self.settings.decoding.record_chars;
        let regex = format!("CORRECT|({}) (?s:.{{1,{chars}}})", ids.join("|"));
        let longest = "CORRECT".len() + MAX_CHAR_BYTES * chars;
        let grammar = Some(Grammar::Regex(regex));
        Step {
            stage: Stage::Final,
            round: 0,
            purpose: "answer",
            shape: self.settings.decoding.within(grammar, longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::panel::scripted::Script;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{check, note};

    #[test]
    fn the_model_is_asked_again_where_it_cannot_be_read() {
        let protocol = SystemConfig::parse("base-llm", &["prompt=2"]).unwrap();
        let ask = |replies: [&'static str; 2]| {
            let script = Script::new(move |key, _| replies[key.sample as usize].to_owned());
            check(&protocol, &note(), script)
        };
        let (record, calls) = ask(["1 Beta agonists were given.", "never"]);
        assert_eq!((record.flag, record.sentence_id, calls.len()), (Some(true), Some(1), 1));
        assert_eq!(record.correction.as_deref(), Some("Beta agonists were given."));
        assert!(calls[0].messages[0].content.contains("\n1 Beta blockers"));
        let (record, calls) = ask(["hm", "CORRECT"]);
        assert_eq!((record.flag, calls.len()), (Some(false), 2));
        let (record, _) = ask(["hm", "hm"]);
        assert_eq!(record.flag, Some(false));
        assert_eq!(record.detection.unwrap().flags, [None]);
    }
}
