//! What agents are asked, and what their texts look like.

use super::parse::Located;
use super::settings::{Localisation, Settings};
use crate::data::Note;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{CallLine, Grammar, Message};
use crate::systems::case::messages;
use crate::systems::decoding::Shape;
use crate::systems::form::{MAX_CHAR_BYTES, STEPS};
use crate::systems::reply::field;
use crate::systems::text::numbered;

/// Which of the two agents who work alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    A,
    B,
}

/// The prompts of every agent (Table 15), and those of the combined ones, which are ours.
pub struct Texts {
    settings: Settings,
    detection_a: String,
    detection_b: String,
    detection_arbiter: String,
    detection_opinions: String,
    localisation_a: String,
    localisation_b: String,
    localisation_arbiter: String,
    localisation_opinion: String,
    numbered: String,
    correction: String,
    second_correction: String,
    all_at_once: String,
    detection_and_localisation: String,
    localisation_and_correction: String,
}

impl Texts {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<Texts, PromptError> {
        let get = |name: &str, placeholders: &[&str]| {
            let text = prompts.get(&format!("medguards/{name}.txt"), placeholders)?;
            Ok::<_, PromptError>(text.to_owned())
        };
        Ok(Texts {
            settings: settings.clone(),
            detection_a: get("detection-a", &[])?,
            detection_b: get("detection-b", &[])?,
            detection_arbiter: get("detection-arbiter", &[])?,
            detection_opinions: get("detection-opinions", &["full_text", "first", "second"])?,
            localisation_a: get("localisation-a", &["agent_name"])?,
            localisation_b: get("localisation-b", &["agent_name"])?,
            localisation_arbiter: get("localisation-arbiter", &["full_text", "partner_opinion"])?,
            localisation_opinion: get("localisation-opinion", &["agent_name", "opinion"])?,
            numbered: get("numbered", &[])?,
            correction: get("correction", &["full_text", "error_sentence"])?,
            second_correction: get(
                "second-correction",
                &["full_text", "error_sentence", "proposal"],
            )?,
            all_at_once: get("all-at-once", &[])?,
            detection_and_localisation: get("detection-and-localisation", &[])?,
            localisation_and_correction: get("localisation-and-correction", &[])?,
        })
    }

    pub fn detect(&self, prompt: Prompt, note: &Note) -> Vec<Message> {
        let prompt = match prompt {
            Prompt::A => &self.detection_a,
            Prompt::B => &self.detection_b,
        };
        before_note(prompt, &note.text)
    }

    /// The note, and what both said: all of it, or their labels with as much else as the settings let through (Table 4).
    pub fn arbitrate_detection(&self, note: &Note, said: [&CallLine; 2]) -> Vec<Message> {
        let opinion = |call: &CallLine| match self.settings.release_compat {
            true => call.text.clone(),
            false => self.detection_opinion(call),
        };
        let [first, second] = said.map(opinion);
        let opinions = fill(
            &self.detection_opinions,
            &[("full_text", &note.text), ("first", &first), ("second", &second)],
        );
        before_note(&self.detection_arbiter, &opinions)
    }

    fn detection_opinion(&self, call: &CallLine) -> String {
        let mut lines = Vec::new();
        if self.settings.det_reasoning {
            lines.push(format!("<think>{}</think>", field(&call.record, "thought")));
        }
        lines.push(
            match call.record["flag"].as_bool() {
                Some(true) => "INCORRECT",
                Some(false) => "CORRECT",
                None => "UNKNOWN",
            }
            .to_owned(),
        );
        if self.settings.det_confidence {
            lines.extend(percent(call).map(|score| format!("<confidence>{score}</confidence>")));
        }
        lines.join("\n")
    }

    pub fn locate(&self, prompt: Prompt, note: &Note) -> Vec<Message> {
        let (template, name) = match prompt {
            Prompt::A => (&self.localisation_a, AGENT_A),
            Prompt::B => (&self.localisation_b, AGENT_B),
        };
        let prompt = fill(template, &[("agent_name", name)]);
        before_note(&self.with_numbers(prompt), &self.report(note))
    }

    /// The note, and which sentences both mean, each with what the settings let through; the published code passes the sentences alone.
    pub fn arbitrate_localisation(
        &self,
        note: &Note,
        said: [&CallLine; 2],
        meant: [String; 2],
    ) -> Vec<Message> {
        let passes = |is_on: bool| is_on && !self.settings.release_compat;
        let opinion = |call: &CallLine, meant: String| {
            let mut lines = vec![meant];
            if passes(self.settings.loc_reasoning) {
                lines.push(format!("Reasoning: {}", field(&call.record, "thought")));
            }
            if passes(self.settings.loc_confidence) {
                lines.extend(percent(call).map(|score| format!("Confidence: {score}")));
            }
            lines.join("\n")
        };
        let [first, second] = said;
        let [first_meant, second_meant] = meant;
        let opinions =
            [(AGENT_A, opinion(first, first_meant)), (AGENT_B, opinion(second, second_meant))];
        let opinions = opinions.map(|(name, opinion)| {
            let values = [("agent_name", name), ("opinion", &opinion)];
            fill(&self.localisation_opinion, &values)
        });
        let prompt = fill(
            &self.localisation_arbiter,
            &[("full_text", &self.report(note)), ("partner_opinion", &opinions.join("\n\n"))],
        );
        messages("", self.with_numbers(prompt))
    }

    pub fn correct(&self, note: &Note, sentence: &str) -> Vec<Message> {
        let values = [("full_text", note.text.as_str()), ("error_sentence", sentence)];
        messages("", fill(&self.correction, &values))
    }

    pub fn correct_again(&self, note: &Note, sentence: &str, proposal: &str) -> Vec<Message> {
        let values = [
            ("full_text", note.text.as_str()),
            ("error_sentence", sentence),
            ("proposal", proposal),
        ];
        messages("", fill(&self.second_correction, &values))
    }

    pub fn do_all(&self, note: &Note) -> Vec<Message> {
        self.combined(&self.all_at_once, note)
    }

    pub fn detect_and_locate(&self, note: &Note) -> Vec<Message> {
        self.combined(&self.detection_and_localisation, note)
    }

    pub fn locate_and_correct(&self, note: &Note) -> Vec<Message> {
        self.combined(&self.localisation_and_correction, note)
    }

    fn combined(&self, prompt: &str, note: &Note) -> Vec<Message> {
        before_note(&self.with_numbers(prompt.to_owned()), &self.report(note))
    }

    fn with_numbers(&self, prompt: String) -> String {
        match self.settings.localisation {
            Localisation::Soft => prompt,
            Localisation::Hard => format!("{prompt} {}", self.numbered),
        }
    }

    /// The note as localisation shows it.
    fn report(&self, note: &Note) -> String {
        match self.settings.localisation {
            Localisation::Soft => note.text.clone(),
            Localisation::Hard => numbered(note),
        }
    }

    /// Reasons, a label, confidence.
    pub fn label(&self) -> Shape {
        self.shape(&[LABEL.to_owned()], LABEL_BYTES)
    }

    /// Reasons, a sentence or its number or NAN, confidence.
    pub fn result(&self, note: &Note) -> Shape {
        let (result, bytes) = self.place(note);
        self.shape(&[result], bytes)
    }

    /// Reasons, a sentence or NAN, confidence.
    pub fn corrected(&self, note: &Note) -> Shape {
        let chars = self.sentence_chars(note);
        self.shape(&[tagged("result", chars)], MAX_CHAR_BYTES * chars)
    }

    /// As [`Texts::result`], and the corrected sentence.
    pub fn place_and_correction(&self, note: &Note) -> Shape {
        let chars = self.sentence_chars(note);
        let (result, bytes) = self.place(note);
        let parts = [result, tagged("correction", chars)];
        self.shape(&parts, bytes + MAX_CHAR_BYTES * chars)
    }

    /// A label before them.
    pub fn everything(&self, note: &Note) -> Shape {
        let chars = self.sentence_chars(note);
        let (result, bytes) = self.place(note);
        let parts = [LABEL.to_owned(), result, tagged("correction", chars)];
        self.shape(&parts, LABEL_BYTES + bytes + MAX_CHAR_BYTES * chars)
    }

    fn place(&self, note: &Note) -> (String, usize) {
        match self.settings.localisation {
            Localisation::Soft => {
                let chars = self.sentence_chars(note);
                (tagged("result", chars), MAX_CHAR_BYTES * chars)
            }
            Localisation::Hard => {
                let ids: Vec<String> = (0..note.sentences.len()).map(|id| id.to_string()).collect();
                (format!("<result>({}|NAN)</result>", ids.join("|")), 3)
            }
        }
    }

    /// The note's longest sentence, and as much more as a string of a record.
    fn sentence_chars(&self, note: &Note) -> usize {
        let lengths = note.sentences.iter().map(|one| one.chars().count());
        lengths.max().unwrap_or(0) + self.settings.decoding.record_chars
    }

    fn shape(&self, parts: &[String], bytes: usize) -> Shape {
        let thought = STEPS * self.settings.decoding.record_chars;
        let regex = format!(
            "<think>{}</think>\n{}\n<confidence>(100|[1-9][0-9]?)</confidence>",
            any(thought),
            parts.join("\n"),
        );
        let tags =
            "<think></think><result></result><correction></correction><confidence>100</confidence>";
        let longest = tags.len() + parts.len() + 2 + MAX_CHAR_BYTES * thought + bytes;
        let grammar = Some(Grammar::Regex(regex));
        self.settings.decoding.within(grammar, longest)
    }
}

pub const AGENT_A: &str = "Agent A";
pub const AGENT_B: &str = "Agent B";

const LABEL: &str = "(CORRECT|INCORRECT)";
const LABEL_BYTES: usize = "INCORRECT".len();

/// Text that closes no tag.
fn any(chars: usize) -> String {
    format!("(?s:[^<]|<[^/]){{1,{chars}}}")
}

fn tagged(tag: &str, chars: usize) -> String {
    format!("<{tag}>{}</{tag}>", any(chars))
}

/// A prompt, and two lines on the note.
fn before_note(prompt: &str, note: &str) -> Vec<Message> {
    messages("", format!("{prompt}\n\n{note}"))
}

/// The confidence as agents are asked for it.
fn percent(call: &CallLine) -> Option<u32> {
    let share = call.record["confidence"].as_f64();
    share.map(|share| (share * 100.0).round() as u32)
}

/// How a sentence that was meant is shown to the arbiter.
pub fn shown(located: &Located, sentence: Option<&str>) -> String {
    match (located, sentence) {
        (_, Some(sentence)) => sentence.to_owned(),
        (Located::Nothing, None) => "NAN".to_owned(),
        (_, None) => "ERROR".to_owned(),
    }
}
