//! The agents' prompts: note, memory and history first, the agent's own task last, so that the calls of a turn share a cached prefix.
//! The log keeps what a search found by reference, so that it holds no text of a corpus that may not be copied.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use serde_json::Value;

use super::review::Review;
use super::step::StepRecord;
use crate::data::Note;
use crate::prompts::{PromptError, PromptSet, fill, passages};
use crate::record::{Message, Part, SearchLine, SearchPlace};
use crate::systems::messages::{numbered, prompt_files};

prompt_files! {
    struct Prompts in "medreflex" {
        system: "common-system" [],
        user: "user" ["note", "memory", "history", "task"],
        instructions: "instructions" [],
        react: "react-task" ["instructions", "actions", "turns", "left"],
        deadline: "react-deadline" [],
        actions_object: "actions-object" [],
        actions_call: "actions-call" [],
        eval: "eval-task" [],
        reflex: "reflex-task" ["instructions", "reviews"],
        parser: "parser-task" ["numbered"],
        step: "step" ["number", "observation", "thought", "action"],
        results: "results" ["number", "results"],
        reflexion: "reflexion" ["number", "reflexion"],
        reviews: "reviews" ["reviews"],
        no_reviews: "no-reviews" [],
        no_memory: "no-memory" [],
        no_history: "no-history" [],
    }
}

pub struct Texts {
    prompts: Prompts,
    passage: String,
    /// What steps are told of a deadline: MedReAct's only turn is parsed whatever happened. With reviews whoever obeyed would never have a turn
    /// without an answer, the third way out of the paper's Figure 1.
    deadline: String,
}

/// A step that was taken and kept.
pub struct HistoryStep {
    /// From 0, lost steps counted.
    pub number: u32,
    pub record: StepRecord,
    pub found: Option<SearchLine>,
}

/// The part of a prompt before the agent's task.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub note: &'a Note,
    pub memory: &'a [String],
    pub history: &'a [HistoryStep],
    /// Whether actions are written as objects; else as calls.
    pub as_objects: bool,
}

impl Texts {
    pub fn new(is_reviewed: bool, prompts: &PromptSet) -> Result<Texts, PromptError> {
        let passage = prompts.get("medreflex/passage", &["text"])?;
        let prompts = Prompts::read(prompts)?;
        let deadline = if is_reviewed { String::new() } else { prompts.deadline.clone() };
        Ok(Texts { prompts, passage, deadline })
    }

    /// The user message before and behind the history.
    fn frame(&self) -> (&str, &str) {
        self.prompts.user.split_once("{history}").unwrap_or((&self.prompts.user, ""))
    }

    /// The next of `turns` steps, of which `used` were taken.
    pub fn react(&self, view: View<'_>, used: u32, turns: u32) -> Vec<Message> {
        let Prompts { actions_object, actions_call, .. } = &self.prompts;
        let (left, used, turns) = ((turns - used).to_string(), used.to_string(), turns.to_string());
        let values = [
            ("instructions", self.prompts.instructions.as_str()),
            ("actions", if view.as_objects { actions_object } else { actions_call }),
            ("used", &used),
            ("turns", &turns),
            ("left", &left),
            ("deadline", &self.deadline),
        ];
        self.messages(view, &fill(&self.prompts.react, &values))
    }

    pub fn review(&self, view: View<'_>) -> Vec<Message> {
        self.messages(view, &self.prompts.eval)
    }

    /// The reflexion on a turn; `None` where it gave no answer, so that nothing was reviewed.
    pub fn reflex(&self, view: View<'_>, reviews: Option<&[Review]>) -> Vec<Message> {
        let reviews = match reviews {
            None => self.prompts.no_reviews.clone(),
            Some(reviews) => {
                let shown = Value::Array(reviews.iter().map(Review::shown).collect());
                fill(&self.prompts.reviews, &[("reviews", &format!("{shown:#}"))])
            }
        };
        let values = [("instructions", self.prompts.instructions.as_str()), ("reviews", &reviews)];
        self.messages(view, &fill(&self.prompts.reflex, &values))
    }

    pub fn parse(&self, view: View<'_>) -> Vec<Message> {
        let numbered = numbered(view.note);
        self.messages(view, &fill(&self.prompts.parser, &[("numbered", &numbered)]))
    }

    fn messages(&self, view: View<'_>, task: &str) -> Vec<Message> {
        let memory = match view.memory {
            [] => self.prompts.no_memory.clone(),
            memory => {
                let reflexions = memory.iter().zip(1..).map(|(text, number): (_, u32)| {
                    let number = number.to_string();
                    fill(&self.prompts.reflexion, &[("number", &number), ("reflexion", text)])
                });
                reflexions.collect::<Vec<_>>().join("\n\n---\n\n")
            }
        };
        let values = [("note", view.note.text.as_str()), ("memory", &memory), ("task", task)];
        let (head, tail) = self.frame();
        let (history, found) = self.history(view);
        let text = fill(head, &values) + &history + &fill(tail, &values);
        let user = quoted("user", &text, &found);
        [Message::new("system", self.prompts.system.clone()), user].into()
    }

    /// The steps, and what the searches found whose passages they show.
    fn history(&self, view: View<'_>) -> (String, Vec<Quotation>) {
        let (mut text, mut shown) = (String::new(), Vec::new());
        if view.history.is_empty() {
            text += &self.prompts.no_history;
        }
        for (place, kept) in view.history.iter().enumerate() {
            if place > 0 {
                text += "\n\n";
            }
            let number = (kept.number + 1).to_string();
            let written = kept.record.action.as_ref().map(|action| match view.as_objects {
                true => action.as_object(),
                false => action.as_call(),
            });
            let values = [
                ("number", number.as_str()),
                ("observation", &kept.record.observation),
                ("thought", &kept.record.thought),
                ("action", written.as_deref().unwrap_or_default()),
            ];
            text += &fill(&self.prompts.step, &values);
            let Some(found) = &kept.found else { continue };
            text += "\n";
            let results = fill(&self.prompts.results, &[("number", &number)]);
            text += &results.replacen("{results}", &PASSAGES, 1);
            shown.push(Quotation::new(found, &self.passage));
        }
        (text, shown)
    }
}

/// Where passages belong in a prompt that is filled in. Another in each process, so that no note can hold it; no prompt that is sent or
/// logged does.
static PASSAGES: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:08x}\u{fdd1}", RandomState::new().hash_one(0) as u32));

/// What was found, as a prompt quotes it.
#[derive(Clone)]
struct Quotation {
    place: SearchPlace,
    text: String,
}

impl Quotation {
    /// By the template of a passage.
    fn new(found: &SearchLine, template: &str) -> Quotation {
        let SearchLine { round, step, .. } = *found;
        Quotation { place: SearchPlace { round, step }, text: passages(template, found) }
    }
}

/// A message of a text, in which [`PASSAGES`] stands where each search's find belongs.
fn quoted(role: &str, text: &str, found: &[Quotation]) -> Message {
    let part = |text: &str| (Part::Text(text.to_owned()), text.to_owned());
    let mut texts = text.splitn(found.len() + 1, PASSAGES.as_str());
    let mut parts: Vec<_> = texts.next().map(part).into_iter().collect();
    for (found, after) in found.iter().zip(texts) {
        parts.push((Part::Passages { passages: found.place }, found.text.clone()));
        parts.push(part(after));
    }
    Message::of_parts(role, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark that a note could write would move the passages.
    #[test]
    fn no_text_holds_the_place_of_the_passages() {
        let note = "\u{fdd0}passages\u{fdd1} \u{fdd0}0000000000000000\u{fdd1}";
        let text = format!("{note}\n{}\nend", *PASSAGES);
        let place = SearchPlace { round: 0, step: 1 };
        let found = Quotation { place, text: "Give protamine.".to_owned() };
        let message = quoted("user", &text, &[found]);
        assert_eq!(message.content, format!("{note}\nGive protamine.\nend"));
    }
}
