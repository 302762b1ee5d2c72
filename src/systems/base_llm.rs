//! One model asked for the error in a note with MEDEC's prompts: the baseline of MedGuards' tables.

mod reply;

use std::sync::Arc;

pub use self::reply::{Reading, read, with_ascii_digits};
use serde::{Deserialize, Serialize};

use super::case::{Case, Step};
use super::config::{self, SOLO};
use super::decoding::{Decoding, Shape};
use super::exemplars::Exemplars;
use super::messages::{messages, numbered};
use super::settings::{switch, whole};
use super::{Opening, System, Task};
use crate::data::{Item, Note};
use crate::diagnosis::Failure;
use crate::panel::{Asked, PanelError};
use crate::prompts::PromptSet;
use crate::record::{DetectionLine, Flag, ItemLine, LocalisationLine, Message, Source, Stage};

/// Calls on a note at most, while its answer cannot be parsed.
const TRIES: u32 = 2;

/// How the baseline runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// MEDEC's first or second prompt.
    #[serde(deserialize_with = "whole::<1, 2, _, _>")]
    pub prompt: u32,
    /// Whether any output that contains CORRECT, even as INCORRECT, means that there is no error, as in MedGuards' published code.
    #[serde(with = "switch")]
    pub release_compat: bool,
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { prompt: 1, release_compat: false, decoding: Decoding::default() }
    }
}

impl config::Settings for Settings {
    fn max_calls(&self) -> u32 {
        TRIES
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        let prompt = prompts.get(&format!("base_llm/prompt-{}", self.prompt), &[])?;
        Ok(Box::new(BaseLlm { settings: self.clone(), prompt }))
    }
}

struct BaseLlm {
    settings: Settings,
    prompt: String,
}

impl System for BaseLlm {
    /// A note without a reply that can be parsed has no flag.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?.as_written(self.settings.release_compat);
        let note = case.item;
        let mut line = case.open();
        let mut asked = self.ask(&case, 0)?;
        for sample in 1..TRIES {
            // Without sampling it would say the same again.
            let may_differ = asked.call.sampling.temperature != Some(0.0);
            if asked.value == Reading::default() && may_differ {
                asked = self.ask(&case, sample)?;
            }
        }
        let reading = asked.value;
        line.flag = Flag::on(asked.call.basis(), reading.flag);
        line.detection = Some(DetectionLine {
            source: Source::Single,
            agents: vec![SOLO.to_owned()],
            flags: vec![line.flag.said()],
            confidences: vec![None],
        });
        if let Some(sentence_id) = reading.sentence_id {
            line.sentence = note.sentences[sentence_id].clone();
            line.sentence_id = Some(sentence_id);
            line.exact_sentence_id = Some(sentence_id);
            line.correction = reading.correction;
            line.localisation = Some(LocalisationLine {
                source: Source::Single,
                agents: vec![SOLO.to_owned()],
                opinions: vec![sentence_id.to_string()],
                sentence_ids: vec![Some(sentence_id)],
                confidences: vec![None],
            });
        }
        line.calls = case.calls();
        Ok(line.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        Some(vec![Opening { member: 0, messages: self.messages(item.note()?) }])
    }
}

impl BaseLlm {
    fn messages(&self, note: &Note) -> Vec<Message> {
        messages("", format!("{}\n\n{}", self.prompt, numbered(note)))
    }

    fn ask(&self, case: &Case<'_, Note>, sample: u32) -> Result<Asked<Reading>, PanelError> {
        let (note, decoding) = (case.item, &self.settings.decoding);
        let ids: Vec<String> = (0..note.sentences.len()).map(|id| id.to_string()).collect();
        let chars = decoding.sentence_chars(note);
        let regex = format!("CORRECT|({}) (?s:.{{1,{chars}}})", ids.join("|"));
        let step = Step::new(Stage::Final, 0, "answer", Shape::regex(regex));
        let mut call = case.call(&step, 0, SOLO, self.messages(note));
        call.key.sample = sample;
        let compat = self.settings.release_compat;
        case.ask(call, |text, _| read(text, note, compat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::Parse;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{check, note};

    fn says(text: &str, release_compat: bool) -> Reading {
        let (reading, parse) = read(text, &note(), release_compat);
        assert_eq!(parse == Parse::Unread, reading == Reading::default());
        reading
    }

    #[test]
    fn a_number_and_a_sentence_or_one_word() {
        const BETTER: &str = "Beta agonists were given for the attack.";
        let right = Reading { flag: Some(false), ..Reading::default() };
        let wrong =
            Reading { flag: Some(true), sentence_id: Some(1), correction: Some(BETTER.to_owned()) };
        assert_eq!(says("CORRECT", false), right);
        assert_eq!(says(" correct. \n", false), right);
        assert_eq!(says("The text is correct", false), right);
        assert_eq!(says(&format!("1 {BETTER}"), false), wrong);
        assert_eq!(says(&format!("INCORRECT\n1. {BETTER}"), false), wrong);
        let note = note();
        let all = format!("0 {}\n1 {BETTER}\n2 {}", note.sentences[0], note.sentences[2]);
        assert_eq!(says(&all, false), wrong);
        let somewhere = Reading { flag: Some(true), ..Reading::default() };
        assert_eq!(says("INCORRECT", false), somewhere);
        for unreadable in [
            "",
            "-1",
            "0",
            "1",
            "1.5 x",
            "2 weeks of B",
            "2 110/70 mm Hg at rest",
            "3 Too far.",
            "1 Beta blockers were given for the attack.",
            "0 The mother of the child is 45.\n1 Her ankle is swollen.\n2 A rash is on both arms.",
            "1 Beta agonists were given for the attack.\nCORRECT",
            "1 Beta agonists were given for the attack.\n2 She went to a home.",
            "0 A 30-year-old woman came with wheezing.\n1 Beta agonists were given for the attack.",
        ] {
            assert_eq!(says(unreadable, false), Reading::default(), "{unreadable}");
        }
        // The published code takes INCORRECT for CORRECT.
        assert_eq!(says("INCORRECT: 2 Give B.", true), right);
        assert_eq!(says(&format!("1 {BETTER}"), true), wrong);
    }

    #[test]
    fn the_model_is_asked_again_where_it_cannot_be_read() {
        let config = SystemConfig::parse("base-llm", &["prompt=2"]).unwrap();
        let ask = |replies: [&'static str; 2]| {
            let script = Script::new(move |key, _| replies[key.sample as usize].to_owned());
            check(&config, &note(), script)
        };
        let (record, calls) = ask(["1 Beta agonists were given.", "never"]);
        assert_eq!((record.flag.said(), record.sentence_id, calls.len()), (Some(true), Some(1), 1));
        assert_eq!(record.correction.as_deref(), Some("Beta agonists were given."));
        assert!(calls[0].messages[0].content.contains("\n1 Beta blockers"));
        // A sentence as it stands corrects nothing.
        let (record, calls) = ask(["1 Beta blockers were given for the attack.", "hm"]);
        assert_eq!((record.flag.said(), record.sentence_id, calls.len()), (None, None, 2));
        let (record, calls) = ask(["hm", "CORRECT"]);
        assert_eq!((record.flag.said(), calls.len()), (Some(false), 2));
        let (record, _) = ask(["hm", "hm"]);
        assert_eq!(record.flag.said(), None);
        assert_eq!(record.detection.unwrap().flags, [None]);
    }
}
