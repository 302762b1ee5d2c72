//! The protocol on one note: turns of steps until an answer is accepted (Fig. 1 and §4; `reflexion.py` and `react.py` of the release).

use super::answer::{self, Answer};
use super::review::{self, Review, decide};
use super::settings::{OnExhaustion, Protocol, ResultsKept, Reviewing, Searching, Temperatures};
use super::shapes;
use super::step::{self, Action, StepRecord};
use super::texts::{HistoryStep, Texts, View};
use crate::data::{Item, Note};
use crate::panel::{Asked, Call, DecodingMode, PanelError};
use crate::prompts::{PromptError, PromptSet, label};
use crate::record::{
    Basis, ItemLine, Message, SearchLine, SearchPlace, Stage, Trajectory, TurnLine,
};
use crate::systems::case::{Case, Step};
use crate::systems::reading::reply::Passage;
use crate::systems::{Opening, System, Task};

/// MedReAct'N'MedReFlex, or without reviews MedReAct.
pub struct MedReflex {
    pub(super) protocol: Protocol,
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

/// The work on a note so far.
pub(super) struct NoteState<'a> {
    pub(super) case: Case<'a, Note>,
    memory: Vec<String>,
    pub(super) trajectory: Trajectory,
    /// Every search of the note.
    pub(super) searched: Vec<SearchLine>,
}

/// A turn's steps, with its answer where it gave one.
pub(super) struct Turn {
    line: TurnLine,
    pub(super) history: Vec<HistoryStep>,
    pub(super) action: Option<Action>,
    /// Of a step that could be read.
    basis: Option<Basis>,
    /// Of a review that could be read.
    reviewed: Option<Basis>,
}

/// What the work on a note came to.
pub(super) struct Outcome {
    pub(super) answer: Answer,
    /// What the answer's flag rests on.
    pub(super) basis: Option<Basis>,
    /// The turn that gave the answer.
    pub(super) turn: Option<Turn>,
}

/// What the turns had that could be read, for a note of which no answer is accepted.
#[derive(Default)]
struct Heard {
    is_answered: bool,
    step: Option<Basis>,
    review: Option<Basis>,
}

impl Heard {
    fn take(&mut self, turn: &Turn) {
        self.is_answered |= turn.action.is_some();
        self.step = self.step.or(turn.basis);
        self.review = self.review.or(turn.reviewed);
    }

    /// By the paper a note has no error where no answer is accepted: one was rejected by a review, or none was given by steps that could
    /// be read.
    fn no_error(self) -> Outcome {
        let basis = if self.is_answered { self.review } else { self.step };
        let answer = Answer { is_error: Some(false), ..Answer::default() };
        Outcome { answer, basis, turn: None }
    }
}

impl System for MedReflex {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let mut line = case.open();
        let mut state = NoteState {
            case,
            memory: Vec::new(),
            trajectory: Trajectory::default(),
            searched: Vec::new(),
        };
        let outcome = match &self.protocol.reviewing {
            None => {
                let turn = self.turn(&mut state, 0)?;
                self.parsed(&state, turn)?
            }
            Some(reviewing) => self.review_until_accepted(&mut state, reviewing)?,
        };
        self.conclude(state, &mut line, outcome);
        Ok(line.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let view = View { note: item.note()?, memory: &[], history: &[], as_objects: false };
        let messages = self.texts.react(view, 0, self.protocol.steps);
        Some(vec![Opening { member: 0, messages }])
    }

    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let note = item.note()?;
        let chars = self.protocol.decoding.record_chars;
        let searches = match self.protocol.searching.results_kept {
            ResultsKept::All => self.protocol.steps as usize,
            ResultsKept::Last => 1,
        };
        let Searching { retrieve_top_k, rerank_top_k, .. } = self.protocol.searching;
        let passages = searches * rerank_top_k.min(retrieve_top_k) * passage_chars;
        let steps = self.protocol.steps as usize * 3 * chars;
        let reflexions = self.protocol.reviewing.as_ref().map_or(0, |reviewing| {
            let turns = reviewing.turns.saturating_sub(1) as usize;
            // Under 150 words are asked for.
            turns * 1000 + reviewing.reviewers as usize * (chars + 200)
        });
        // The parser reads the note twice, the second time with its sentences numbered.
        let note = 2 * note.text.chars().count() + 4 * note.sentences.len();
        Some(self.texts.fixed_chars() + note + passages + steps + reflexions)
    }
}

impl MedReflex {
    pub fn new(protocol: Protocol, prompts: &PromptSet) -> Result<MedReflex, PromptError> {
        Ok(MedReflex { texts: Texts::new(&protocol, prompts)?, protocol })
    }

    /// The accepted answer, or the outcome that the setting `on_exhaustion` says.
    fn review_until_accepted(
        &self,
        state: &mut NoteState<'_>,
        reviewing: &Reviewing,
    ) -> Result<Outcome, PanelError> {
        let mut heard = Heard::default();
        // The last turn with an answer, else the last turn.
        let mut last: Option<Turn> = None;
        for round in 0..reviewing.turns {
            let mut turn = self.turn(state, round)?;
            let reviews = match turn.action {
                Some(_) => Some(self.review(state, reviewing, &mut turn)?),
                None => None,
            };
            state.trajectory.turns.push(turn.line.clone());
            heard.take(&turn);
            if turn.line.accepted {
                return self.parsed(state, turn);
            }
            if round + 1 < reviewing.turns {
                self.reflect(state, &turn, reviews.as_deref())?;
            }
            if turn.action.is_some() || last.as_ref().is_none_or(|turn| turn.action.is_none()) {
                last = Some(turn);
            }
        }
        state.trajectory.exhausted = true;
        match (reviewing.on_exhaustion, last) {
            (OnExhaustion::LastAnswer, Some(turn)) => self.parsed(state, turn),
            _ => Ok(heard.no_error()),
        }
    }

    /// Steps until an answer, or until they are used up. Of earlier turns the prompt has the reflexions only.
    fn turn(&self, state: &mut NoteState<'_>, round: u32) -> Result<Turn, PanelError> {
        let mut turn = Turn {
            line: TurnLine { round, ..TurnLine::default() },
            history: Vec::new(),
            action: None,
            basis: None,
            reviewed: None,
        };
        for number in 0..self.protocol.steps {
            turn.line.steps += 1;
            let Asked { call, value: record } = self.step(state, &turn, number)?;
            turn.basis = call.basis().or(turn.basis);
            let found = match &record.action {
                Some(Action::Search { query }) => Some(self.search(state, round, number, query)?),
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
        if self.protocol.reviewing.is_none() {
            state.trajectory.turns.push(turn.line.clone());
        }
        Ok(turn)
    }

    fn step(
        &self,
        state: &NoteState<'_>,
        turn: &Turn,
        number: u32,
    ) -> Result<Asked<StepRecord>, PanelError> {
        let view = self.view(state, &turn.history);
        let messages = self.texts.react(view, number, self.protocol.steps);
        let labels = if self.protocol.searching.cite { labels(&turn.history) } else { Vec::new() };
        let shape = shapes::step(&self.protocol.decoding, state.case.item, &labels);
        let step = Step::new(Stage::Aside, turn.line.round, "step", shape);
        let react = if self.protocol.reviewing.is_some() { REACT } else { ALONE };
        let call = self.call(state, &step, react, number, messages);
        state.case.ask(call, step::read)
    }

    fn search(
        &self,
        state: &mut NoteState<'_>,
        round: u32,
        step: u32,
        query: &str,
    ) -> Result<SearchLine, PanelError> {
        let place = SearchPlace { round, step };
        let Searching { retrieve_top_k, rerank_top_k, .. } = self.protocol.searching;
        let found = state.case.search(place, query, retrieve_top_k, rerank_top_k)?;
        state.trajectory.searches.push(place);
        state.searched.push(found.clone());
        Ok(found)
    }

    /// Reviews the answer of a turn; returns the reviews that could be parsed.
    fn review(
        &self,
        state: &NoteState<'_>,
        reviewing: &Reviewing,
        turn: &mut Turn,
    ) -> Result<Vec<Review>, PanelError> {
        let messages = self.texts.review(self.view(state, &turn.history));
        let shape = shapes::review(&self.protocol.decoding);
        let step = Step::new(Stage::Aside, turn.line.round, "review", shape);
        let calls = (0..reviewing.reviewers)
            .map(|reviewer| self.call(state, &step, EVAL, reviewer, messages.clone()));
        let asked = state.case.ask_all(calls, review::read)?;
        let all = asked.len();
        turn.reviewed = asked.iter().find_map(|asked| asked.call.basis());
        let reviews = asked.into_iter().map(|asked| asked.value);
        let reviews: Vec<Review> = reviews.filter(|one| one.final_score().is_some()).collect();
        turn.line.unread_reviews = (all - reviews.len()) as u32;
        let scores = reviews.iter().filter_map(Review::final_score).collect();
        decide(reviewing, scores, &mut turn.line);
        Ok(reviews)
    }

    fn reflect(
        &self,
        state: &mut NoteState<'_>,
        turn: &Turn,
        reviews: Option<&[Review]>,
    ) -> Result<(), PanelError> {
        let messages = self.texts.reflex(self.view(state, &turn.history), reviews);
        let shape = self.protocol.decoding.passage();
        let step = Step::new(Stage::Aside, turn.line.round, "reflexion", shape);
        let call = self.call(state, &step, REFLEX, 0, messages);
        let Passage { text } = state.case.ask(call, |text, _| Passage::said(text))?.value;
        if !text.is_empty() {
            state.trajectory.reflexions += 1;
            state.memory.push(text);
        }
        Ok(())
    }

    fn parsed(&self, state: &NoteState<'_>, turn: Turn) -> Result<Outcome, PanelError> {
        let parsed = self.parse(state, &turn)?;
        Ok(turn.outcome(parsed))
    }

    fn parse(&self, state: &NoteState<'_>, turn: &Turn) -> Result<Asked<Answer>, PanelError> {
        let note = state.case.item;
        let messages = self.texts.parse(self.view(state, &turn.history));
        let shape = shapes::answer(&self.protocol.decoding, note);
        let step = Step::new(Stage::Final, turn.line.round, "parse", shape);
        let call = self.call(state, &step, PARSER, 0, messages);
        let action = turn.action.as_ref();
        let read = |text: &str, finish_reason| answer::read(text, finish_reason, note, action);
        state.case.ask(call, read)
    }

    fn view<'a>(&self, state: &'a NoteState<'_>, history: &'a [HistoryStep]) -> View<'a> {
        let as_objects = state.case.task.panel.settings.decoding != DecodingMode::Text;
        View { note: state.case.item, memory: &state.memory, history, as_objects }
    }

    /// Sample number `sample` of an agent.
    fn call(
        &self,
        state: &NoteState<'_>,
        step: &Step,
        published: Published,
        sample: u32,
        messages: Vec<Message>,
    ) -> Call {
        let Published { agent, temperature, max_tokens } = published;
        let mut members = state.case.task.panel.members.iter();
        let member = members.position(|member| member.agent == agent).unwrap_or_default();
        let mut call = state.case.call(step, member, agent, messages);
        call.key.sample = sample;
        // Else as the member and the run have it.
        let is_paper = self.protocol.searching.temperatures == Temperatures::Paper;
        call.temperature = is_paper.then_some(temperature);
        call.max_tokens = is_paper.then_some(max_tokens);
        call
    }
}

impl Turn {
    /// The outcome of what the parser said. Where it could not be read, its answer is made of the turn's action.
    fn outcome(self, Asked { call, value }: Asked<Answer>) -> Outcome {
        Outcome { answer: value, basis: call.basis().or(self.basis), turn: Some(self) }
    }
}

/// The labels of the passages in a history.
fn labels(history: &[HistoryStep]) -> Vec<String> {
    let found = history.iter().filter_map(|kept| kept.found.as_ref());
    found.flat_map(|found| (1..=found.shown.len()).map(|rank| label(found.step, rank))).collect()
}
