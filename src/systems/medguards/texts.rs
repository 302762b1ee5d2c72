//! The agents' prompts, and the grammars of their replies.

use itertools::Itertools;

use super::parse::{Said, Wanted};
use super::settings::{Localisation, Settings};
use crate::data::Note;
use crate::panel::Asked;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{Grammar, Message};
use crate::systems::messages::{messages, numbered, numbers, prompt_files};

prompt_files! {
    /// The prompts of every agent (Table 15), and those of agents with several tasks, which are ours.
    struct Prompts in "medguards" {
        detection_a: "detection-a" [],
        detection_b: "detection-b" [],
        detection_arbiter: "detection-arbiter" [],
        detection_opinions: "detection-opinions" ["full_text", "first", "second"],
        localisation_a: "localisation-a" ["agent_name"],
        localisation_b: "localisation-b" ["agent_name"],
        localisation_arbiter: "localisation-arbiter" ["full_text", "partner_opinion"],
        localisation_opinion: "localisation-opinion" ["agent_name", "opinion"],
        numbered: "numbered" [],
        correction: "correction" ["full_text", "error_sentence"],
        second_correction: "second-correction" ["full_text", "error_sentence", "proposal"],
        all_at_once: "all-at-once" [],
        detection_and_localisation: "detection-and-localisation" [],
        localisation_and_correction: "localisation-and-correction" [],
    }
}

pub struct Texts {
    settings: Settings,
    prompts: Prompts,
}

impl Texts {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<Texts, PromptError> {
        Ok(Texts { settings: settings.clone(), prompts: Prompts::read(prompts)? })
    }

    /// The prompts of the two agents who detect independently.
    pub fn detect(&self, note: &Note) -> [Vec<Message>; 2] {
        [&self.prompts.detection_a, &self.prompts.detection_b]
            .map(|prompt| before_note(prompt, &note.text))
    }

    /// The note and both labels, with what the settings pass on of the replies (Table 4).
    pub fn arbitrate_detection(&self, note: &Note, said: &[Asked<Said>]) -> Vec<Message> {
        let [first, second] = [0, 1].map(|agent| self.detection_opinion(&said[agent].value));
        let opinions = fill(
            &self.prompts.detection_opinions,
            &[("full_text", &note.text), ("first", &first), ("second", &second)],
        );
        before_note(&self.prompts.detection_arbiter, &opinions)
    }

    fn detection_opinion(&self, said: &Said) -> String {
        let label = match said.flag {
            Some(true) => "INCORRECT",
            Some(false) => "CORRECT",
            None => "UNKNOWN",
        };
        let mut lines = vec![label.to_owned()];
        if self.settings.det_reasoning {
            lines.insert(0, format!("<think>{}</think>", said.thought));
        }
        if self.settings.det_confidence {
            lines.extend(percent(said).map(|score| format!("<confidence>{score}</confidence>")));
        }
        lines.join("\n")
    }

    /// The prompts of the two agents who locate independently.
    pub fn locate(&self, note: &Note) -> [Vec<Message>; 2] {
        let prompts =
            [(&self.prompts.localisation_a, AGENT_A), (&self.prompts.localisation_b, AGENT_B)];
        prompts.map(|(template, name)| {
            let prompt = fill(template, &[("agent_name", name)]);
            before_note(&self.with_numbers(&prompt), &self.report(note))
        })
    }

    /// The note and the sentences that both mean, each with what the settings pass on.
    pub fn arbitrate_localisation(&self, note: &Note, said: &[Asked<Said>]) -> Vec<Message> {
        let opinion = |said: &Said| {
            let mut lines = vec![said.shown(note).to_owned()];
            if self.settings.loc_reasoning {
                lines.push(format!("Reasoning: {}", said.thought));
            }
            if self.settings.loc_confidence {
                lines.extend(percent(said).map(|score| format!("Confidence: {score}")));
            }
            lines.join("\n")
        };
        let mut opinions = [AGENT_A, AGENT_B].iter().zip(said).map(|(name, said)| {
            let values = [("agent_name", *name), ("opinion", &opinion(&said.value))];
            fill(&self.prompts.localisation_opinion, &values)
        });
        let prompt = fill(
            &self.prompts.localisation_arbiter,
            &[("full_text", &self.report(note)), ("partner_opinion", &opinions.join("\n\n"))],
        );
        messages("", self.with_numbers(&prompt))
    }

    pub fn correct(&self, note: &Note, sentence: &str) -> Vec<Message> {
        let values = [("full_text", note.text.as_str()), ("error_sentence", sentence)];
        messages("", fill(&self.prompts.correction, &values))
    }

    pub fn correct_again(&self, note: &Note, sentence: &str, proposal: &str) -> Vec<Message> {
        let values = [
            ("full_text", note.text.as_str()),
            ("error_sentence", sentence),
            ("proposal", proposal),
        ];
        messages("", fill(&self.prompts.second_correction, &values))
    }

    /// The prompt of an agent with several tasks.
    pub fn combined(&self, wanted: Wanted, note: &Note) -> Vec<Message> {
        let prompt = match wanted {
            Wanted::Everything => &self.prompts.all_at_once,
            Wanted::PlaceAndCorrection => &self.prompts.localisation_and_correction,
            _ => &self.prompts.detection_and_localisation,
        };
        before_note(&self.with_numbers(prompt), &self.report(note))
    }

    fn with_numbers(&self, prompt: &str) -> String {
        match self.settings.localisation {
            Localisation::Soft | Localisation::Likest => prompt.to_owned(),
            Localisation::Hard => format!("{prompt} {}", self.prompts.numbered),
        }
    }

    /// The note as prompts of localisation show it.
    fn report(&self, note: &Note) -> String {
        match self.settings.localisation {
            Localisation::Soft | Localisation::Likest => note.text.clone(),
            Localisation::Hard => numbered(note),
        }
    }

    /// The grammar of a reply: reasons, the results of the task, and a confidence.
    pub fn grammar(&self, wanted: Wanted, note: &Note) -> Grammar {
        // A sentence or NAN.
        let sentence = |tag| tagged(tag, self.settings.decoding.sentence_chars(note));
        let label = || LABEL.to_owned();
        let parts = match wanted {
            Wanted::Label => vec![label()],
            Wanted::Place => vec![self.place(note)],
            Wanted::Correction => vec![sentence("result")],
            Wanted::PlaceAndCorrection => vec![self.place(note), sentence("correction")],
            Wanted::Everything => vec![label(), self.place(note), sentence("correction")],
        };
        Grammar::Regex(format!(
            "<think>{}</think>\n{}\n<confidence>(100|[1-9][0-9]?)</confidence>",
            any(THOUGHT_STRINGS * self.settings.decoding.record_chars),
            parts.join("\n"),
        ))
    }

    /// The regex of a sentence, or its number, or NAN.
    fn place(&self, note: &Note) -> String {
        match self.settings.localisation {
            Localisation::Soft | Localisation::Likest => {
                tagged("result", self.settings.decoding.sentence_chars(note))
            }
            Localisation::Hard => format!("<result>({}|NAN)</result>", numbers(note)),
        }
    }
}

const AGENT_A: &str = "Agent A";
const AGENT_B: &str = "Agent B";

const LABEL: &str = "(CORRECT|INCORRECT)";

/// Reasons may have as many times `record_chars` under the grammar: 4,800 characters by default, about 1,200 tokens, twice what the
/// paper's models write in a call (Table 10).
const THOUGHT_STRINGS: usize = 20;

/// A regex of text without a closing tag.
fn any(chars: usize) -> String {
    format!("(?s:[^<]|<[^/]){{1,{chars}}}")
}

fn tagged(tag: &str, chars: usize) -> String {
    format!("<{tag}>{}</{tag}>", any(chars))
}

/// A prompt, a blank line and the note.
fn before_note(prompt: &str, note: &str) -> Vec<Message> {
    messages("", format!("{prompt}\n\n{note}"))
}

/// The confidence in percent, as agents are asked for it.
fn percent(said: &Said) -> Option<u32> {
    said.confidence.map(|share| (share * 100.0).round() as u32)
}
