//! The systems that search articles: EM_Mixers, whose finding an article must confirm, and Maven, which fills in a blanked word.

use serde::{Deserialize, Serialize};

use super::{BLANK, Design, Finding, Kit, Request, Solve, Solver, filled_in};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::{PromptSet, fill, passages};
use crate::record::{Message, Part, SearchPlace};
use crate::systems::System;
use crate::systems::case::Case;
use crate::systems::config::passage;
use crate::systems::exemplars::prompt::Prompt;
use crate::systems::exemplars::reply::Field::{Correction, Flag, Id, Sentence};
use crate::systems::exemplars::reply::{Form, Style};
use crate::systems::exemplars::{Choice, Kinds, Opinion};
use crate::systems::messages::{messages, numbered};

pub(in crate::systems) const ANSWER: Form = Form {
    style: Style::Json,
    fields: &[
        ("Error", Flag(["no", "yes"])),
        ("Error Sentence ID", Id),
        ("Error Sentence", Sentence),
        ("Corrected Sentence", Correction),
    ],
};
pub(in crate::systems) const CHECK: Form = Form {
    style: Style::Json,
    fields: &[("Error Flag", Flag(["no", "yes"])), ("Revised Sentence", Correction)],
};
/// Exemplars of the second judgement.
const CHECK_SHOTS: usize = 4;
/// Passages that EM_Mixers' second judgement quotes.
const EM_CHUNKS: usize = 1;
/// Passages that Maven's second prompt quotes.
const MAVEN_CHUNKS: usize = 4;
/// The placeholder of the passages in a prompt.
const PASSAGES: &str = "{passages}";

/// Whether articles are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    #[default]
    Corpus,
    /// EM_Mixers stops after its first stage; Maven fills in the word without articles.
    Off,
}

/// EM_Mixers'.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmSettings {
    pub evidence: Evidence,
}

/// Maven's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MavenSettings {
    pub evidence: Evidence,
}

impl Design for EmSettings {
    fn calls(&self) -> u32 {
        match self.evidence {
            Evidence::Corpus => 3,
            Evidence::Off => 1,
        }
    }

    fn searches(&self) -> bool {
        self.evidence == Evidence::Corpus
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        Ok(Box::new(Solver(EmMixers {
            evidence: self.evidence,
            answer: Prompt::new(prompts, "em-mixers", Some("em-mixers"), &ANSWER)?,
            keyword: prompts.get("mediqa_corr/em-mixers-keyword", &["sentence"])?,
            check: Prompt::new(prompts, "em-mixers-check", Some("em-mixers"), &CHECK)?,
            passage: passage(prompts, "mediqa_corr", false)?,
            choice: kit.choice(Kinds::Balanced),
            kit,
        })))
    }
}

impl Design for MavenSettings {
    fn calls(&self) -> u32 {
        2
    }

    fn searches(&self) -> bool {
        self.evidence == Evidence::Corpus
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        Ok(Box::new(Solver(Maven {
            evidence: self.evidence,
            mask: prompts.get("mediqa_corr/maven-mask", &["note"])?,
            fill: prompts.get("mediqa_corr/maven-fill", &["note", "passages"])?,
            passage: passage(prompts, "mediqa_corr", false)?,
            kit,
        })))
    }
}

/// A search's passages, as a prompt quotes them.
struct Quoted {
    place: SearchPlace,
    text: String,
}

/// Searches for `query`; `None` where nothing is found.
fn look_up(
    case: &Case<'_, Note>,
    query: &str,
    chunks: usize,
    passage: &str,
) -> Result<Option<Quoted>, PanelError> {
    let place = SearchPlace { round: 0, step: 0 };
    let found = case.search(place, query, chunks, chunks)?;
    Ok((!found.shown.is_empty()).then(|| Quoted { place, text: passages(passage, &found) }))
}

/// The messages with the passages filled into the last, where the log keeps them by reference.
fn quote(mut messages: Vec<Message>, quoted: &Quoted) -> Vec<Message> {
    let Some(last) = messages.pop() else { return messages };
    let text = |text: &str| (Part::Text(text.to_owned()), text.to_owned());
    let parts = match last.content.split_once(PASSAGES) {
        Some((before, after)) => {
            let passages = (Part::Passages { passages: quoted.place }, quoted.text.clone());
            vec![text(before), passages, text(after)]
        }
        None => vec![text(&last.content)],
    };
    messages.push(Message::of_parts(&last.role, parts));
    messages
}

struct EmMixers {
    evidence: Evidence,
    answer: Prompt,
    keyword: String,
    check: Prompt,
    passage: String,
    choice: Choice,
    kit: Kit,
}

impl Solve for EmMixers {
    /// There is an error where both stages say so; its sentence and correction are those of the first stage.
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let (note, kit) = (case.item, &self.kit);
        let first = kit.judge(case, Request::new("answer", 0.0, self.first(note)?), &ANSWER)?;
        let mut finding = Finding::alone(&first);
        let Some(id) = first.value.sentence_id else { return Ok(finding) };
        if self.evidence == Evidence::Off {
            return Ok(finding);
        }
        let sentence = note.sentences[id].as_str();
        let prompt = fill(&self.keyword, &[("sentence", sentence)]);
        let request = Request::new("keyword", 0.0, messages("", prompt));
        let keyword = kit.words(case, request, "keyword", 1)?.value.words.pop();
        let keyword = keyword.unwrap_or_else(|| longest_word(sentence));
        let Some(quoted) = look_up(case, &keyword, EM_CHUNKS, &self.passage)? else {
            return Ok(finding);
        };
        let prompt = quote(self.check_messages(note, sentence)?, &quoted);
        let request = Request::new("check", 0.0, prompt);
        let second = Opinion::from(&kit.judge(case, request, &CHECK)?);
        if second.flag.is_clear() {
            finding.opinion = Opinion { flag: second.flag, ..Opinion::default() };
        }
        Ok(finding)
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        let shots = self.kit.exemplars.shots(note, &self.choice)?;
        Ok(self.answer.messages(&shots, note, &[]))
    }

    fn quoting(&self, note: &Note) -> Result<Option<(Vec<Message>, usize)>, PanelError> {
        if self.evidence == Evidence::Off {
            return Ok(None);
        }
        let longest = note.sentences.iter().max_by_key(|sentence| sentence.len());
        let messages = self.check_messages(note, longest.map_or("", String::as_str))?;
        Ok(Some((messages, EM_CHUNKS)))
    }
}

impl EmMixers {
    /// The prompt of the second judgement, its passages not yet filled in.
    fn check_messages(&self, note: &Note, sentence: &str) -> Result<Vec<Message>, PanelError> {
        let choice = Choice { shots: CHECK_SHOTS, ..self.choice };
        let shots = self.kit.exemplars.shots(note, &choice)?;
        Ok(self.check.messages(&shots, note, &[("sentence", sentence)]))
    }
}

/// The longest word of a sentence, the first of several.
fn longest_word(sentence: &str) -> String {
    let words = sentence.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let length = |word: &str| word.chars().count();
    words.fold("", |best, word| if length(word) > length(best) { word } else { best }).to_owned()
}

struct Maven {
    evidence: Evidence,
    mask: String,
    fill: String,
    passage: String,
    kit: Kit,
}

impl Solve for Maven {
    /// A word that differs from the note's is an error; without any word there is no opinion.
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let note = case.item;
        let request = Request::new("mask", 0.0, self.first(note)?);
        let place = |entity: &str| {
            let mut sentences = note.sentences.iter();
            sentences.rposition(|sentence| sentence.contains(entity))
        };
        let entity = self.kit.quoted(case, request, "entity", |entity| place(entity).is_some())?;
        let Some((entity, id)) = entity.and_then(|entity| place(&entity).map(|id| (entity, id)))
        else {
            return Ok(Finding::default());
        };
        let mut masked = note.clone();
        for sentence in &mut masked.sentences {
            *sentence = sentence.replace(&entity, BLANK);
        }
        let query = masked.sentences.join(" ").replace(BLANK, " ");
        let mut prompt = messages("", fill(&self.fill, &[("note", &numbered(&masked))]));
        let quoted = match self.evidence {
            Evidence::Corpus => look_up(case, &query, MAVEN_CHUNKS, &self.passage)?,
            Evidence::Off => None,
        };
        if let Some(quoted) = quoted {
            prompt = quote(prompt, &quoted);
        } else if let Some(last) = prompt.last_mut() {
            *last = Message::new("user", last.content.replace(PASSAGES, ""));
        }
        let request = Request::new("fill", 0.0, prompt);
        let filled = self.kit.words(case, request, "entity", 1)?;
        let correct = |word: &str| note.sentences[id].replace(&entity, word);
        let opinion = filled_in(filled.call.basis(), filled.value.first(), &entity, id, correct);
        Ok(Finding::alone(opinion))
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        Ok(messages("", fill(&self.mask, &[("note", &numbered(note))])))
    }

    fn quoting(&self, note: &Note) -> Result<Option<(Vec<Message>, usize)>, PanelError> {
        let messages = || messages("", fill(&self.fill, &[("note", &numbered(note))]));
        Ok((self.evidence == Evidence::Corpus).then(|| (messages(), MAVEN_CHUNKS)))
    }
}

#[cfg(test)]
mod tests;
