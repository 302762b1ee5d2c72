//! The debate of the original's experts: in the turns of a round each says whether it wants to talk, and to whom, and does; after the round all
//! answer again. The first turn in which nobody talks is the last.

use serde::Serialize;
use serde_json::{Value, json};

use super::recruits::Expert;
use super::teams::read_passage;
use super::{AGENTS, Answered, MODERATOR, MdAgents, answers, expert_name};
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::fill;
use crate::record::{FinishReason, Parse, Stage};
use crate::systems::case::{Case, Record, Step};
use crate::systems::decoding::Shape;
use crate::systems::form::{array, choice, either};
use crate::systems::messages::{fill_question, messages};
use crate::systems::reading::reply::{Explained, Fields};
use crate::systems::reading::text;
use crate::systems::reading::words::{consents, parts};

/// The experts of a round, what they answered before it as prompts show it, and what was said to each in it.
struct Group<'a> {
    experts: &'a [Expert],
    opinions: String,
    comments: Vec<Vec<String>>,
}

impl MdAgents {
    /// The rounds of the experts' answers, and the moderator's decision on the last. A turn is a round of calls, and so is answering again.
    pub(super) fn debate(
        &self,
        case: &Case<'_>,
        experts: &[Expert],
        first: &[Asked<Explained>],
    ) -> Result<Answered, PanelError> {
        let chars = self.settings.decoding.reason_chars();
        let mut rounds = vec![answers((Stage::Initial, 0), first, String::new())];
        let mut opinions = self.shown(experts, first, chars);
        let mut summary = String::new();
        // Who is alone talks to nobody.
        let (mut step, mut is_over) = (0, experts.len() < 2);
        for _ in 0..self.settings.max_rounds {
            summary = self.summarise(case, step, &opinions)?;
            let comments = vec![Vec::new(); experts.len()];
            let mut group = Group { experts, opinions, comments };
            let mut turns = 0;
            while turns < self.settings.max_turns && !is_over {
                step += 1;
                is_over = !self.talk(case, step, &mut group)?;
                turns += u32::from(!is_over);
            }
            if turns > 0 {
                step += 1;
                let again = self.answer_again(case, step, &group)?;
                rounds.push(answers((Stage::Round, step), &again, summary.clone()));
                group.opinions = self.shown(experts, &again, chars);
            }
            opinions = group.opinions;
            if is_over {
                break;
            }
        }
        let said = [("summary", summary.as_str()), ("opinions", &opinions)];
        let decision = self.decide(case, step, &self.messages.decision_on_debate, &said)?;
        Ok((rounds, decision))
    }

    /// What the experts' answers before a round come to.
    fn summarise(&self, case: &Case<'_>, step: u32, shown: &str) -> Result<String, PanelError> {
        let step = Step::new(Stage::Aside, step, "summary", self.settings.decoding.passage());
        let messages = self.messages.summary.fill_question(case.item, &[("opinions", shown)]);
        let call = case.call(&step, MODERATOR, "moderator", messages);
        Ok(case.ask(call, read_passage)?.value.text)
    }

    /// A turn, in which all who want to talk do at once. Whether anybody does.
    fn talk(&self, case: &Case<'_>, step: u32, group: &mut Group<'_>) -> Result<bool, PanelError> {
        let count = group.experts.len();
        let number = json!({"enum": (1..=count).collect::<Vec<_>>()});
        let whom = array(number, 1, count);
        let yes = vec![("talk", choice(&["yes"])), ("experts", whom)];
        let shape = Shape::under(&either([vec![("talk", choice(&["no"]))], yes]));
        let wish = Step::new(Stage::Aside, step, "wish", shape);
        let others = |own: usize| (0..count).filter(move |other| *other != own);
        let calls = (0..count).map(|own| {
            self.ask_expert(case, (&wish, &self.messages.wish), group, own, others(own))
        });
        let wishes =
            case.ask_all(calls, |text, finish_reason| read_wish(text, finish_reason, count))?;
        let talks = wishes.iter().enumerate().map(|(own, wish)| {
            let is_chosen = |other: &usize| wish.value.experts.contains(&(other + 1));
            (own, others(own).filter(is_chosen).collect::<Vec<_>>())
        });
        let talks: Vec<(usize, Vec<usize>)> = talks.filter(|(_, whom)| !whom.is_empty()).collect();

        let comment = Step::new(Stage::Aside, step, "comment", self.settings.decoding.passage());
        let calls = talks.iter().map(|(own, whom)| {
            let whom = whom.iter().copied();
            self.ask_expert(case, (&comment, &self.messages.comment), group, *own, whom)
        });
        let comments = case.ask_all(calls, read_passage)?;
        for ((own, whom), comment) in talks.iter().zip(comments) {
            let values = [("role", &group.experts[*own].role), ("report", &comment.value.text)];
            let said = fill(&self.messages.investigation_block, &values);
            let is_said = !comment.value.text.is_empty();
            for other in whom.iter().filter(|_| is_said) {
                group.comments[*other].push(said.clone());
            }
        }
        Ok(!talks.is_empty())
    }

    fn answer_again(
        &self,
        case: &Case<'_>,
        step: u32,
        group: &Group<'_>,
    ) -> Result<Vec<Asked<Explained>>, PanelError> {
        let step = self.opinion_step(case, (Stage::Round, step), "opinion");
        let calls = (0..group.experts.len()).map(|own| {
            self.ask_expert(case, (&step, &self.messages.answer), group, own, std::iter::empty())
        });
        case.ask_all(calls, self.reader(case))
    }

    /// A call of one expert, whom it tells of these others by their numbers.
    fn ask_expert(
        &self,
        case: &Case<'_>,
        (step, template): (&Step, &str),
        group: &Group<'_>,
        own: usize,
        others: impl Iterator<Item = usize>,
    ) -> Call {
        let Expert { role, expertise, .. } = &group.experts[own];
        let system = fill(&self.messages.expert, &[("role", role), ("expertise", expertise)]);
        let comments = match &group.comments[own][..] {
            [] => "nothing".to_owned(),
            said => said.join("\n\n"),
        };
        let others = others.map(|other| format!("{}: {}", other + 1, group.experts[other].role));
        let others: Vec<String> = others.collect();
        let values = [
            ("opinions", group.opinions.as_str()),
            ("comments", &comments),
            ("experts", &others.join("\n")),
        ];
        let user = fill_question(template, case.item, &values);
        case.call(step, own % AGENTS, expert_name(own), messages(&system, user))
    }
}

/// Whether an expert wants to talk, and to whom, by their numbers from 1.
#[derive(Debug, PartialEq, Serialize)]
pub struct Wish {
    pub talk: bool,
    pub experts: Vec<usize>,
}

impl Record for Wish {
    const ASSUMED: &[&str] = &["talk", "experts"];
}

/// Parses a wish of one of `count` experts. Who does not say so, or to none of them, wants to talk to nobody.
pub fn read_wish(said: &str, finish_reason: FinishReason, count: usize) -> (Wish, Parse) {
    let reply = Fields::read(said, finish_reason, "talk");
    let talks = match reply.get("talk") {
        Value::Bool(talks) => Some(*talks),
        Value::String(word) => consents(word),
        _ if reply.parse == Parse::Fallback => consents(reply.text()),
        _ => None,
    };
    let whom = text(reply.get("experts"));
    let mut experts: Vec<usize> = parts(&whom).into_iter().filter_map(number).collect();
    experts.retain(|number| (1..=count).contains(number) && talks == Some(true));
    let parse = reply.parse.if_read(talks == Some(false) || !experts.is_empty());
    (Wish { talk: !experts.is_empty(), experts }, parse)
}

/// The only number in a text: 2 of «Expert 2 (Surgeon)».
fn number(text: &str) -> Option<usize> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let number = numbers.next()?.parse().ok();
    number.filter(|_| numbers.next().is_none())
}
