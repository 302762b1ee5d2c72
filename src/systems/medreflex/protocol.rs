//! The protocol on one note: turns of steps until an answer is accepted (Fig. 1 and §4; `reflexion.py` and `react.py` of the release).

use super::answer::{self, Answer};
use super::review::{self, Review, decide};
use super::settings::{ReactSettings, Settings, Temperatures};
use super::shapes;
use super::step::{self, Action, StepRecord};
use super::texts::{HistoryStep, Texts, View};
use crate::data::{Item, Note};
use crate::panel::{Asked, Call, DecodingMode, PanelError};
use crate::prompts::{PromptError, PromptSet};
use crate::record::{
    Basis, ItemLine, Message, SearchLine, SearchPlace, Stage, Trajectory, TurnLine,
};
use crate::systems::case::{Case, Step};
use crate::systems::reading::reply::passage;
use crate::systems::{System, Task};

/// MedReAct'N'MedReFlex, or without reviews MedReAct.
pub struct MedReflex {
    settings: ReactSettings,
    /// `None`: one turn, whose answer stands.
    pub(super) reviewing: Option<Settings>,
    texts: Texts,
}

/// An agent, and how the published configuration has it called.
#[derive(Clone, Copy)]
struct Published {
    agent: &'static str,
    temperature: f32,
    max_tokens: usize,
}

const REACT: Published = Published { agent: "react", temperature: 0.1, max_tokens: 1024 };
const ALONE: Published = Published { agent: "react", temperature: 0.0, max_tokens: 4096 };
const EVAL: Published = Published { agent: "eval", temperature: 1.0, max_tokens: 1200 };
const REFLEX: Published = Published { agent: "reflex", temperature: 0.1, max_tokens: 512 };
const PARSER: Published = Published { agent: "parser", temperature: 0.0, max_tokens: 512 };

/// Characters of the longest prompt without note, steps and passages.
const FRAME_CHARS: usize = 2600;

pub(super) struct Work<'a> {
    pub(super) system: &'a MedReflex,
    pub(super) case: Case<'a, Note>,
    memory: Vec<String>,
    pub(super) trajectory: Trajectory,
    pub(super) searched: Vec<SearchLine>,
}

/// A turn's steps, with its answer where it gave one, and the reviews of that.
#[derive(Default)]
pub(super) struct Turn {
    line: TurnLine,
    pub(super) history: Vec<HistoryStep>,
    pub(super) action: Option<Action>,
    /// Those that could be read.
    reviews: Option<Vec<Review>>,
    /// Of a step that could be read.
    basis: Option<Basis>,
    /// Of a review that could be read.
    reviewed: Option<Basis>,
}

/// An answer, and what its flag rests on.
pub(super) type Outcome = (Answer, Option<Basis>);

impl System for MedReflex {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let mut work = Work {
            system: self,
            case: task.note()?,
            memory: Vec::new(),
            trajectory: Trajectory::default(),
            searched: Vec::new(),
        };
        let outcome = match &self.reviewing {
            None => {
                let turn = work.turn(0)?;
                work.trajectory.turns.push(turn.line.clone());
                work.parse(turn)?
            }
            Some(reviewing) => work.review_until_accepted(reviewing)?,
        };
        Ok(ItemLine::Note(work.conclude(outcome)))
    }

    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let note = item.note()?;
        let ReactSettings { retrieve_top_k, rerank_top_k, .. } = self.settings;
        let (steps, chars) = (self.settings.steps as usize, self.settings.decoding.record_chars);
        let passages = steps * rerank_top_k.min(retrieve_top_k) * passage_chars;
        let steps = steps * 3 * chars;
        let reflexions = self.reviewing.as_ref().map_or(0, |reviewing| {
            let turns = reviewing.turns.saturating_sub(1) as usize;
            // Under 150 words are asked for.
            turns * 1000 + reviewing.reviewers as usize * (chars + 200)
        });
        // The parser reads the note twice, the second time with its sentences numbered.
        let note = 2 * note.text.chars().count() + 4 * note.sentences.len();
        Some(FRAME_CHARS + note + passages + steps + reflexions)
    }
}

impl MedReflex {
    pub fn new(
        settings: &ReactSettings,
        reviewing: Option<&Settings>,
        prompts: &PromptSet,
    ) -> Result<MedReflex, PromptError> {
        let texts = Texts::new(reviewing.is_some(), prompts)?;
        Ok(MedReflex { settings: settings.clone(), reviewing: reviewing.cloned(), texts })
    }
}

impl Work<'_> {
    /// Figure 1: turns until the reviews accept an answer, a reflexion between two.
    fn review_until_accepted(&mut self, reviewing: &Settings) -> Result<Outcome, PanelError> {
        let mut turns: Vec<Turn> = Vec::new();
        for round in 0..reviewing.turns {
            let mut turn = self.turn(round)?;
            if turn.action.is_some() {
                self.review(reviewing, &mut turn)?;
            }
            self.trajectory.turns.push(turn.line.clone());
            if turn.line.accepted {
                return self.parse(turn);
            }
            if round + 1 < reviewing.turns {
                self.reflect(&turn)?;
            }
            turns.push(turn);
        }
        self.trajectory.exhausted = true;
        // By the paper a note has no error where no answer is accepted: one was rejected by a review, or none was given by steps that could be
        // read.
        let is_answered = turns.iter().any(|turn| turn.action.is_some());
        let basis = |turn: &Turn| if is_answered { turn.reviewed } else { turn.basis };
        let basis = turns.iter().find_map(basis);
        let answer = Answer { is_error: Some(false), ..Answer::default() };
        Ok((answer, basis))
    }

    /// Steps until an answer, or until they are used up. Of earlier turns the prompt has the reflexions only.
    fn turn(&mut self, round: u32) -> Result<Turn, PanelError> {
        let mut turn = Turn { line: TurnLine { round, ..TurnLine::default() }, ..Turn::default() };
        for number in 0..self.system.settings.steps {
            turn.line.steps += 1;
            let Asked { call, value: record } = self.step(&turn, number)?;
            turn.basis = call.basis().or(turn.basis);
            let found = match &record.action {
                Some(Action::Search { query }) => Some(self.search(round, number, query)?),
                Some(answer @ Action::FinalMistake { .. }) => {
                    turn.line.is_final = true;
                    turn.action = Some(answer.clone());
                    None
                }
                None => {
                    turn.line.lost_turns += 1;
                    continue;
                }
            };
            turn.history.push(HistoryStep { number, record, found });
            if turn.action.is_some() {
                break;
            }
        }
        Ok(turn)
    }

    fn step(&self, turn: &Turn, number: u32) -> Result<Asked<StepRecord>, PanelError> {
        let MedReflex { settings, reviewing, texts } = self.system;
        let messages = texts.react(self.view(turn), number, settings.steps);
        let grammar = shapes::step(&settings.decoding, self.case.item);
        let react = if reviewing.is_some() { REACT } else { ALONE };
        let step = Step::new(Stage::Aside, turn.line.round, "step", grammar);
        self.case.ask(self.call(&step, react, number, messages), step::read)
    }

    fn search(&mut self, round: u32, step: u32, query: &str) -> Result<SearchLine, PanelError> {
        let place = SearchPlace { round, step };
        let ReactSettings { retrieve_top_k, rerank_top_k, .. } = self.system.settings;
        let found = self.case.search(place, query, retrieve_top_k, rerank_top_k)?;
        self.trajectory.searches.push(place);
        self.searched.push(found.clone());
        Ok(found)
    }

    fn review(&self, reviewing: &Settings, turn: &mut Turn) -> Result<(), PanelError> {
        let messages = self.system.texts.review(self.view(turn));
        let grammar = shapes::review(&self.system.settings.decoding);
        let step = Step::new(Stage::Aside, turn.line.round, "review", grammar);
        let calls = (0..reviewing.reviewers)
            .map(|reviewer| self.call(&step, EVAL, reviewer, messages.clone()));
        let asked = self.case.ask_all(calls, review::read)?;
        let all = asked.len();
        turn.reviewed = asked.iter().find_map(|asked| asked.call.basis());
        let reviews = asked.into_iter().map(|asked| asked.value);
        let reviews: Vec<Review> = reviews.filter(|one| one.final_score().is_some()).collect();
        turn.line.unread_reviews = (all - reviews.len()) as u32;
        let scores = reviews.iter().filter_map(Review::final_score).collect();
        decide(reviewing, scores, &mut turn.line);
        turn.reviews = Some(reviews);
        Ok(())
    }

    fn reflect(&mut self, turn: &Turn) -> Result<(), PanelError> {
        let messages = self.system.texts.reflex(self.view(turn), turn.reviews.as_deref());
        let grammar = self.system.settings.decoding.passage();
        let step = Step::new(Stage::Aside, turn.line.round, "reflexion", grammar);
        let call = self.call(&step, REFLEX, 0, messages);
        let text = self.case.ask(call, |text, _| passage(text))?.value.said;
        if !text.is_empty() {
            self.trajectory.reflexions += 1;
            self.memory.push(text);
        }
        Ok(())
    }

    /// What the parser says of a turn. Where it could not be read, its answer is made of the turn's action.
    fn parse(&self, turn: Turn) -> Result<Outcome, PanelError> {
        let note = self.case.item;
        let messages = self.system.texts.parse(self.view(&turn));
        let grammar = shapes::answer(&self.system.settings.decoding, note);
        let step = Step::new(Stage::Final, turn.line.round, "parse", grammar);
        let call = self.call(&step, PARSER, 0, messages);
        let action = turn.action.as_ref();
        let read = |text: &str, finish_reason| answer::read(text, finish_reason, note, action);
        let Asked { call, value: answer } = self.case.ask(call, read)?;
        Ok((answer, call.basis().or(turn.basis)))
    }

    fn view<'a>(&'a self, turn: &'a Turn) -> View<'a> {
        let as_objects = self.case.task.panel.settings.decoding != DecodingMode::Text;
        let (note, memory, history) = (self.case.item, &self.memory, &turn.history);
        View { note, memory, history, as_objects }
    }

    /// Sample number `sample` of an agent.
    fn call(&self, step: &Step, published: Published, sample: u32, messages: Vec<Message>) -> Call {
        let Published { agent, temperature, max_tokens } = published;
        let mut members = self.case.task.panel.members.iter();
        let member = members.position(|member| member.agent == agent).unwrap_or_default();
        let mut call = self.case.call(step, member, agent, messages);
        call.key.sample = sample;
        // Else as the member and the run have it.
        let is_paper = self.system.settings.temperatures == Temperatures::Paper;
        call.temperature = is_paper.then_some(temperature);
        call.max_tokens = is_paper.then_some(max_tokens);
        call
    }
}
