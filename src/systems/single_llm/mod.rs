//! Single-model baselines as in MedAgentBoard: zero-shot, few-shot, chain of thought, and votes over samples (self-consistency).

pub mod parse;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::parse::{Reading, parse};
use super::case::{Step, Verdict};
use super::config::{self, SOLO, SystemConfig};
use super::decoding::{Decoding, Shape};
use super::exemplars::Exemplars;
use super::form;
use super::messages::{fill_question, messages};
use super::settings::{SettingsError, switch, whole};
use super::table::Entry;
use super::vote::round_line;
use super::{Opening, System, Task};
use crate::data::{Choice, Item, Question};
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::{ItemLine, Message, RoundLine, Stage};

/// The prompting method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    ZeroShot,
    /// Zero-shot with two examples.
    FewShot,
    /// Chain of thought: reasons first, then the letter.
    Cot,
    /// A vote over zero-shot answers.
    SelfConsistency,
    /// A vote over reasoned answers.
    CotSc,
}

impl Method {
    /// Whether the prompt asks for reasons.
    pub fn reasons(self) -> bool {
        matches!(self, Method::Cot | Method::CotSc)
    }
}

/// Which examples few-shot shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Examples {
    /// PubMedQA's where a question's options are yes, no and maybe, else MedQA's.
    #[default]
    ByOptions,
    Medqa,
    Pubmedqa,
}

impl Examples {
    fn are_pubmedqas(self, question: &Question) -> bool {
        let is_word = |option: &Choice| {
            let text = option.text.trim().to_lowercase();
            ["yes", "no", "maybe"].contains(&text.as_str())
        };
        match self {
            Examples::ByOptions => question.options.iter().all(is_word),
            Examples::Medqa => false,
            Examples::Pubmedqa => true,
        }
    }
}

/// How a baseline runs; the defaults are those of MED-MAD's Table 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Determined by the system's name.
    #[serde(skip)]
    pub method: Method,
    /// Samples of a question, which are voted on.
    #[serde(deserialize_with = "whole::<1, 100, _, _>")]
    pub samples: u32,
    /// Which examples few-shot shows; other methods show none.
    pub examples: Examples,
    #[serde(flatten)]
    pub decoding: Decoding,
    /// Whether answers are parsed and counted as MedAgentBoard does, bugs included.
    #[serde(with = "switch")]
    pub mab_compat: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            method: Method::default(),
            samples: 1,
            examples: Examples::ByOptions,
            decoding: Decoding::default(),
            mab_compat: false,
        }
    }
}

/// The system of this method, with the settings that are given.
///
/// # Errors
/// An unknown setting, or a value that it cannot have.
pub fn configure(
    entry: &'static Entry,
    given: Vec<(String, toml::Value)>,
    method: Method,
) -> Result<SystemConfig, SettingsError> {
    SystemConfig::new::<Settings>(entry, given, |settings| Settings { method, ..settings })
}

impl config::Settings for Settings {
    fn max_calls(&self) -> u32 {
        self.samples
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        Ok(Box::new(SingleLlm::new(self, prompts)?))
    }
}

struct SingleLlm {
    settings: Settings,
    system: String,
    user: String,
    few_shot: Option<FewShot>,
}

/// What few-shot puts after the zero-shot prompt.
struct FewShot {
    frame: String,
    medqa: String,
    pubmedqa: String,
}

impl System for SingleLlm {
    /// Draws all samples at once and takes the most common answer.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?.as_written(self.settings.mab_compat);
        let question = case.item;
        let step = Step::new(Stage::Initial, 0, "initial", self.shape(question));
        let calls = (0..self.settings.samples).map(|sample| {
            let mut call = case.call(&step, 0, SOLO, self.messages(question));
            call.key.sample = sample;
            call
        });
        let readings = case.ask_all(calls, |text, finish_reason| {
            parse(text, finish_reason, &self.settings, &question.options)
        })?;
        let readings: Vec<Reading> = readings.into_iter().map(|one| one.value).collect();
        let verdict = verdict(&readings, self.settings.mab_compat);
        let agents = vec![SOLO.to_owned(); readings.len()];
        let answers = readings.into_iter().map(|one| one.answer).collect();
        let round = RoundLine {
            aggregate: verdict.answer.clone(),
            ..round_line(0, step.stage, agents, answers, String::new())
        };
        Ok(case.close(vec![round], verdict).into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        Some(vec![Opening { member: 0, messages: self.messages(item.question()?) }])
    }
}

impl SingleLlm {
    fn new(settings: &Settings, prompts: &PromptSet) -> Result<SingleLlm, PromptError> {
        let text = |name: &str, placeholders: &[&str]| {
            prompts.get(&format!("single_llm/{name}"), placeholders)
        };
        let user = if settings.method.reasons() { "cot" } else { "zero-shot" };
        let few_shot = match settings.method {
            Method::FewShot => Some(FewShot {
                frame: text("few-shot", &["zero_shot", "examples"])?,
                medqa: text("examples-medqa", &[])?,
                pubmedqa: text("examples-pubmedqa", &[])?,
            }),
            _ => None,
        };
        Ok(SingleLlm {
            settings: settings.clone(),
            system: text("system", &[])?,
            user: text(user, &["question", "options"])?,
            few_shot,
        })
    }

    /// The prompt.
    fn messages(&self, question: &Question) -> Vec<Message> {
        let mut user = fill_question(&self.user, question, &[]);
        if let Some(FewShot { frame, medqa, pubmedqa }) = &self.few_shot {
            let is_pubmedqa = self.settings.examples.are_pubmedqas(question);
            let examples = if is_pubmedqa { pubmedqa } else { medqa };
            user = fill(frame, &[("zero_shot", &user), ("examples", examples)]);
        }
        messages(&self.system, user)
    }

    /// A letter, or an answer with its reasons.
    fn shape(&self, question: &Question) -> Shape {
        if !self.settings.method.reasons() {
            return Shape::regex(form::letter(question));
        }
        let thought = self.settings.decoding.reasons();
        Shape::record(vec![("Thought", thought), ("Answer", form::answer(question))])
    }
}

/// The most common letter, the first of several; empty answers have no vote. The harness counts answers as written, and takes the letter of
/// the one that won.
fn verdict(readings: &[Reading], mab_compat: bool) -> Verdict {
    let (answer, tie) = match mab_compat {
        true => {
            let written: Vec<&str> = readings.iter().map(Reading::written).collect();
            let (winner, tie) = most_common(&written);
            let won = readings.iter().find(|one| one.written() == winner);
            (won.map_or("", |one| &one.answer), tie)
        }
        false => {
            let answers = readings.iter().map(|one| one.answer.as_str());
            most_common(&answers.filter(|answer| !answer.is_empty()).collect::<Vec<_>>())
        }
    };
    let supporters = || readings.iter().filter(|one| one.answer == answer);
    let thoughts = supporters().filter_map(|one| one.thought.as_deref());
    let rationale: Vec<&str> = thoughts.filter(|thought| !thought.is_empty()).collect();
    Verdict {
        answer: answer.to_owned(),
        team_confidence: match answer {
            "" => 0.0,
            _ => supporters().count() as f64 / readings.len() as f64,
        },
        rationale: rationale.join("\n"),
        tie,
    }
}

/// The most common text, the first of several, and whether there were several.
fn most_common<'a>(texts: &[&'a str]) -> (&'a str, bool) {
    let count = |text: &str| texts.iter().filter(|other| **other == text).count();
    let most = texts.iter().map(|text| count(text)).max();
    let mut winners = texts.iter().filter(|text| Some(count(text)) == most);
    let winner = winners.next().copied().unwrap_or_default();
    (winner, winners.any(|other| *other != winner))
}
