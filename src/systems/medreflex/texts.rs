//! The agents' prompts: note, memory and history first, the agent's own task last, so that the calls of a turn share a cached prefix.

use serde_json::Value;

use super::review::Review;
use super::settings::{Protocol, ResultsKept};
use super::step::StepRecord;
use crate::data::Note;
use crate::prompts::{PromptError, PromptSet, fill, passages};
use crate::record::{Message, Part, SearchLine, SearchPlace};
use crate::systems::config::passage;
use crate::systems::messages::numbered;

/// The prompts of both systems.
pub struct Texts {
    system: String,
    /// The user message before and behind the history.
    head: String,
    tail: String,
    instructions: String,
    react: String,
    /// Where steps are told to answer in the last one; else empty.
    deadline: String,
    /// The actions as objects and as calls, and what is added to either where passages are labelled.
    actions: [String; 2],
    cite: [String; 2],
    eval: String,
    reflex: String,
    parser: String,
    step: String,
    results: String,
    results_gone: String,
    passage: String,
    reflexion: String,
    reviews: String,
    no_reviews: String,
    no_memory: String,
    no_history: String,
    keeps: ResultsKept,
}

/// A step that was taken and kept.
pub struct HistoryStep {
    /// From 0, lost steps counted.
    pub number: u32,
    pub record: StepRecord,
    /// What its search found.
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
    pub fn new(protocol: &Protocol, prompts: &PromptSet) -> Result<Texts, PromptError> {
        let get = |name: &str, must: &[&str]| prompts.get(&format!("medreflex/{name}"), must);
        let user = get("user", &["note", "memory", "history", "task"])?;
        let (head, tail) = user.split_once("{history}").unwrap_or((&user, ""));
        let cited = |name: &str| match protocol.searching.cite {
            true => get(name, &[]),
            false => Ok(String::new()),
        };
        Ok(Texts {
            system: get("common-system", &[])?,
            head: head.to_owned(),
            tail: tail.to_owned(),
            instructions: get("instructions", &[])?,
            react: get("react-task", &["instructions", "actions", "rules", "turns", "left"])?,
            deadline: match protocol.searching.deadline {
                true => get("react-deadline", &[])?,
                false => String::new(),
            },
            actions: [get("actions-object", &[])?, get("actions-call", &[])?],
            cite: [cited("cite-object")?, cited("cite-call")?],
            eval: get("eval-task", &[])?,
            reflex: get("reflex-task", &["instructions", "reviews"])?,
            parser: get("parser-task", &["numbered"])?,
            step: get("step", &["number", "observation", "thought", "action"])?,
            results: get("results", &["number", "results"])?,
            results_gone: get("results-gone", &["number"])?,
            passage: passage(prompts, "medreflex", protocol.searching.cite)?,
            reflexion: get("reflexion", &["number", "reflexion"])?,
            reviews: get("reviews", &["reviews"])?,
            no_reviews: get("no-reviews", &[])?,
            no_memory: get("no-memory", &[])?,
            no_history: get("no-history", &[])?,
            keeps: protocol.searching.results_kept,
        })
    }

    /// The next of `turns` steps, of which `used` were taken.
    pub fn react(&self, view: View<'_>, used: u32, turns: u32) -> Vec<Message> {
        let form = usize::from(!view.as_objects);
        let (left, used, turns) = ((turns - used).to_string(), used.to_string(), turns.to_string());
        let values = [
            ("instructions", self.instructions.as_str()),
            ("actions", &self.actions[form]),
            ("rules", &self.cite[form]),
            ("used", &used),
            ("turns", &turns),
            ("left", &left),
            ("deadline", &self.deadline),
        ];
        self.messages(view, &fill(&self.react, &values))
    }

    pub fn review(&self, view: View<'_>) -> Vec<Message> {
        self.messages(view, &self.eval)
    }

    /// The reflexion on a turn; `None` where it gave no answer, so that nothing was reviewed.
    pub fn reflex(&self, view: View<'_>, reviews: Option<&[Review]>) -> Vec<Message> {
        let reviews = match reviews {
            None => self.no_reviews.clone(),
            Some(reviews) => {
                let shown = Value::Array(reviews.iter().map(Review::shown).collect());
                fill(&self.reviews, &[("reviews", &format!("{shown:#}"))])
            }
        };
        let values = [("instructions", self.instructions.as_str()), ("reviews", &reviews)];
        self.messages(view, &fill(&self.reflex, &values))
    }

    pub fn parse(&self, view: View<'_>) -> Vec<Message> {
        let numbered = numbered(view.note);
        self.messages(view, &fill(&self.parser, &[("numbered", &numbered)]))
    }

    /// Characters of the longest prompt without note, steps and passages, at most.
    pub fn fixed_chars(&self) -> usize {
        let tasks = [
            self.react.len() + self.instructions.len() + self.actions[0].len() + self.cite[0].len(),
            self.eval.len(),
            self.reflex.len() + self.instructions.len() + self.reviews.len(),
            self.parser.len(),
        ];
        let frame = self.system.len() + self.head.len() + self.tail.len();
        frame + tasks.into_iter().max().unwrap_or(0)
    }

    fn messages(&self, view: View<'_>, task: &str) -> Vec<Message> {
        let memory = match view.memory {
            [] => self.no_memory.clone(),
            memory => {
                let reflexions = memory.iter().zip(1..).map(|(text, number): (_, u32)| {
                    let number = number.to_string();
                    fill(&self.reflexion, &[("number", &number), ("reflexion", text)])
                });
                reflexions.collect::<Vec<_>>().join("\n\n---\n\n")
            }
        };
        let values = [("note", view.note.text.as_str()), ("memory", &memory), ("task", task)];
        let mut parts = Parts::default();
        parts.text(&fill(&self.head, &values));
        self.history(view, &mut parts);
        parts.text(&fill(&self.tail, &values));
        let user = Message::of_parts("user", parts.0);
        [Message::new("system", self.system.clone()), user].into()
    }

    fn history(&self, view: View<'_>, parts: &mut Parts) {
        if view.history.is_empty() {
            return parts.text(&self.no_history);
        }
        let last = view.history.iter().rposition(|kept| kept.found.is_some());
        for (place, kept) in view.history.iter().enumerate() {
            if place > 0 {
                parts.text("\n\n");
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
            parts.text(&fill(&self.step, &values));
            let Some(found) = &kept.found else { continue };
            parts.text("\n");
            if self.keeps == ResultsKept::Last && last != Some(place) {
                parts.text(&fill(&self.results_gone, &[("number", &number)]));
                continue;
            }
            let results = fill(&self.results, &[("number", &number)]);
            let (before, after) = results.split_once("{results}").unwrap_or((&results, ""));
            parts.text(before);
            parts.passages(found, &self.passage);
            parts.text(after);
        }
    }
}

/// The parts of a message, adjacent texts joined.
#[derive(Default)]
struct Parts(Vec<(Part, String)>);

impl Parts {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some((Part::Text(before), whole)) => {
                before.push_str(text);
                whole.push_str(text);
            }
            _ => self.0.push((Part::Text(text.to_owned()), text.to_owned())),
        }
    }

    fn passages(&mut self, found: &SearchLine, template: &str) {
        let SearchLine { round, step, .. } = *found;
        let part = Part::Passages { passages: SearchPlace { round, step } };
        self.0.push((part, passages(template, found)));
    }
}
