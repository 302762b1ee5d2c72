//! Edinburgh Clinical NLP: exemplars as turns of a conversation with hints, and the same as a multiple-choice question.

use serde::{Deserialize, Serialize};

use super::{BLANK, Design, Finding, Kit, Request, Solve, Solver, filled_in};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::{PromptSet, fill};
use crate::record::{Flag, Message};
use crate::systems::System;
use crate::systems::case::Case;
use crate::systems::exemplars::prompt::{Prompt, difference};
use crate::systems::exemplars::reply::Field::{Correction, Id, Reason};
use crate::systems::exemplars::reply::{Form, Style};
use crate::systems::exemplars::{Exemplars, Kinds, Opinion};
use crate::systems::messages::{messages, numbered};
use crate::systems::settings::{switch, whole};

/// A correction of NA says that there is no error, whatever the number beside it.
pub(in crate::systems) const ANSWER: Form = Form {
    style: Style::Json,
    fields: &[("reason", Reason), ("incorrect_sentence_id", Id), ("correction", Correction)],
};
const PLAIN: Form = Form {
    style: Style::Json,
    fields: &[("incorrect_sentence_id", Id), ("correction", Correction)],
};
/// BERTScore F1 of a correction and its sentence, at least.
const LEAST_LIKENESS: f64 = 0.85;

/// Where suspicious words of the note come from, to which a hint points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    #[default]
    Off,
    /// The model is asked for them first.
    Model,
    /// The file of `--spans`.
    File,
}

/// What rejects corrections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    #[default]
    Off,
    /// A correction with a BERTScore below 0.85 to its sentence counts as none.
    Bertscore,
}

/// The style in which exemplars' reasons were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cot {
    Off,
    #[default]
    Brief,
    Long,
    Soap,
}

/// The role that the prompt gives the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    #[default]
    Clinician,
    Assistant,
    Nurse,
    Student,
    Verifier,
    None,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub cot: Cot,
    /// Whether the prompt names the kinds of error.
    #[serde(with = "switch")]
    pub type_hint: bool,
    pub span: Span,
    pub filter: Filter,
    pub role: Role,
}

/// The settings of the multiple-choice question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct McqSettings {
    /// Options of the question, the original words among them.
    #[serde(deserialize_with = "whole::<2, 4, _, _>")]
    pub options: usize,
}

impl Design for Settings {
    fn calls(&self) -> u32 {
        1 + u32::from(self.span == Span::Model)
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        let form = if self.cot == Cot::Off { &PLAIN } else { &ANSWER };
        check_style(self.cot, &kit.exemplars)?;
        if self.filter == Filter::Bertscore && kit.exemplars.likeness.is_none() {
            return Err(Failure::usage(
                "filter=bertscore compares corrections with their sentences, and there is nothing to do so by",
                "give --filter-scorer the folder of deberta-xlarge-mnli, or --set filter=off",
            ));
        }
        let name = |role: Role| format!("mediqa_corr/edinburgh-role-{}", spelled(role));
        let role = match self.role {
            Role::None => String::new(),
            role => prompts.get(&name(role), &[])?,
        };
        let kinds = match self.type_hint {
            true => prompts.get("mediqa_corr/edinburgh-types", &[])?,
            false => String::new(),
        };
        Ok(Box::new(Solver(Edinburgh {
            prompt: Prompt::new(prompts, "edinburgh", None, form)?,
            hint: prompts.get("mediqa_corr/edinburgh-hint", &["span"])?,
            spans: Spans::new(self.span, prompts, &kit.exemplars)?,
            role,
            kinds,
            filter: self.filter,
            kit,
        })))
    }
}

impl Design for McqSettings {
    fn calls(&self) -> u32 {
        3
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        let get = |name: &str, must: &[&str]| prompts.get(&format!("mediqa_corr/mcq-{name}"), must);
        Ok(Box::new(Solver(Mcq {
            spans: Spans::new(Span::Model, prompts, &kit.exemplars)?,
            alternatives: get("alternatives", &["note"])?,
            choice: get("choice", &["note", "options"])?,
            options: self.options,
            kit,
        })))
    }
}

/// Refuses exemplars whose reasons are of another style than `cot`; those without reasons get some made of their gold.
fn check_style(cot: Cot, exemplars: &Exemplars) -> Result<(), Failure> {
    let wanted = spelled(cot);
    match &exemplars.style {
        Some(style) if cot != Cot::Off && *style != wanted => Err(Failure::usage(
            format!(
                "the exemplars' reasons are in the style {style}, and cot={wanted} was asked for"
            ),
            "make others with `wardround reasons --style`, or --set cot to that style",
        )),
        _ => Ok(()),
    }
}

/// The name of a setting's value.
fn spelled(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Finds suspicious words of a note.
struct Spans {
    source: Span,
    prompt: String,
}

impl Spans {
    fn new(source: Span, prompts: &PromptSet, exemplars: &Exemplars) -> Result<Spans, Failure> {
        if source == Span::File && exemplars.spans.is_none() {
            return Err(Failure::usage(
                "span=file reads suspicious words of a file, and none was given",
                "give --spans FILE, or --set span=model",
            ));
        }
        Ok(Spans { source, prompt: prompts.get("mediqa_corr/edinburgh-span", &["note"])? })
    }

    fn messages(&self, note: &Note) -> Vec<Message> {
        messages("", fill(&self.prompt, &[("note", &numbered(note))]))
    }

    /// The words that the file has for a note.
    fn of_file<'a>(note: &Note, exemplars: &'a Exemplars) -> Option<&'a str> {
        let span = exemplars.spans.as_ref()?.get(&note.id)?;
        Some(span.as_str()).filter(|span| !span.trim().is_empty())
    }

    /// The words, and the first sentence that contains them; `None` where none were named, or none that the note contains.
    fn find(
        &self,
        case: &Case<'_, Note>,
        kit: &Kit,
    ) -> Result<Option<(usize, String)>, PanelError> {
        let note = case.item;
        let named = match self.source {
            Span::Off => None,
            Span::File => Spans::of_file(note, &kit.exemplars).map(str::to_owned),
            Span::Model => {
                let request = Request::new("span", 0.0, self.messages(note));
                kit.quoted(case, request, "span", |span| find_words(note, span).is_some())?
            }
        };
        Ok(named.and_then(|span| find_words(note, &span)))
    }
}

/// The first sentence that contains the words, and the words as it spells them.
fn find_words(note: &Note, span: &str) -> Option<(usize, String)> {
    let exact = note.sentences.iter().position(|sentence| sentence.contains(span));
    exact.map(|id| (id, span.to_owned())).or_else(|| in_any_case(note, span))
}

/// The same without regard to case: the words as the note spells them.
fn in_any_case(note: &Note, span: &str) -> Option<(usize, String)> {
    let found = note.sentences.iter().enumerate().find_map(|(id, sentence)| {
        // Where lower case changes the length, positions in both would differ.
        let lower = sentence.to_lowercase();
        let at = lower.find(&span.to_lowercase()).filter(|_| lower.len() == sentence.len())?;
        Some((id, sentence.get(at..at + span.len())?.to_owned()))
    });
    found.filter(|(_, words)| !words.is_empty())
}

struct Edinburgh {
    prompt: Prompt,
    role: String,
    kinds: String,
    hint: String,
    spans: Spans,
    filter: Filter,
    kit: Kit,
}

impl Edinburgh {
    fn messages(&self, note: &Note, span: Option<&str>) -> Result<Vec<Message>, PanelError> {
        let choice = self.kit.choice(Kinds::Balanced);
        let mut shots = self.kit.exemplars.shots(note, &choice)?;
        let hint = |span: Option<&str>| match (span, self.spans.source) {
            (Some(span), Span::Model | Span::File) => fill(&self.hint, &[("span", span)]),
            _ => String::new(),
        };
        for shot in &mut shots {
            let span =
                shot.exemplar.error().map(|error| difference(&error.sentence, &error.correction).0);
            shot.more = vec![("hint", hint(span.as_deref()))];
        }
        let hint = hint(span);
        let more = [("hint", hint.as_str()), ("role", &self.role), ("kinds", &self.kinds)];
        Ok(self.prompt.messages(&shots, note, &more))
    }

    /// An opinion under the filter: where the correction is too unlike its sentence, there is no error.
    fn filtered(&self, said: Opinion, note: &Note) -> Result<Opinion, PanelError> {
        let sentence = said.sentence_id.and_then(|id| note.sentences.get(id));
        let (Filter::Bertscore, Some(likeness), Some(sentence), Some(correction)) =
            (self.filter, &self.kit.exemplars.likeness, sentence, &said.correction)
        else {
            return Ok(said);
        };
        if likeness(sentence, correction).map_err(PanelError::Exemplars)? >= LEAST_LIKENESS {
            return Ok(said);
        }
        let flag = Flag::on(said.flag.basis(), Some(false));
        Ok(Opinion { flag, ..Opinion::default() })
    }
}

impl Solve for Edinburgh {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let span = self.spans.find(case, &self.kit)?;
        let messages = self.messages(case.item, span.as_ref().map(|(_, span)| span.as_str()))?;
        let request = Request::new("answer", 0.0, messages);
        let said = Opinion::from(&self.kit.judge(case, request, self.prompt.form)?);
        Ok(Finding::alone(self.filtered(said, case.item)?))
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        match self.spans.source {
            Span::Model => Ok(self.spans.messages(note)),
            Span::Off => self.messages(note, None),
            Span::File => self.messages(note, Spans::of_file(note, &self.kit.exemplars)),
        }
    }
}

/// Suspicious words are blanked out; there is no error where the model chooses them again among alternatives.
struct Mcq {
    spans: Spans,
    alternatives: String,
    choice: String,
    options: usize,
    kit: Kit,
}

impl Solve for Mcq {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let note = case.item;
        let Some((id, span)) = self.spans.find(case, &self.kit)? else {
            return Ok(Finding::default());
        };
        let mut blanked = note.clone();
        blanked.sentences[id] = note.sentences[id].replacen(&span, BLANK, 1);
        let text = numbered(&blanked);
        let prompt = fill(&self.alternatives, &[("note", &text)]);
        let request = Request::new("alternatives", 0.0, messages("", prompt));
        let mut options = self.kit.words(case, request, "alternatives", 3)?.value.words;
        options.retain(|option| option.to_lowercase() != span.to_lowercase());
        // The original is second, as in the authors' code.
        options.insert(options.len().min(1), span.clone());
        options.truncate(self.options);
        let letters: Vec<String> = ('A'..).take(options.len()).map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        let lines =
            letters.iter().zip(&options).map(|(letter, option)| format!("{letter}: {option}"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let prompt = fill(&self.choice, &[("note", &text), ("options", &lines)]);
        let request = Request::new("choice", 0.0, messages("", prompt));
        let asked = self.kit.one_of(case, request, "answer", &letters)?;
        let chosen = asked.value.first().and_then(|letter| {
            let at = letters.iter().position(|one| one.eq_ignore_ascii_case(letter))?;
            options.get(at).map(String::as_str)
        });
        let correct = |option: &str| note.sentences[id].replacen(&span, option, 1);
        Ok(Finding::alone(filled_in(asked.call.basis(), chosen, &span, id, correct)))
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        Ok(self.spans.messages(note))
    }
}

#[cfg(test)]
mod tests;
