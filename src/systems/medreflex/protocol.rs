//! One note: turns of steps until an answer is accepted (Fig. 1 and §4; `reflexion.py` and `react.py` of the release).

use super::answer::{self, Answer};
use super::review::{self, Review, decide};
use super::settings::{OnExhaustion, Protocol, Reviewing, Searching, Temperatures};
use super::shapes;
use super::step::{self, Action, StepRecord};
use super::texts::{Kept, Texts, View};
use crate::data::{Item, Note};
use crate::panel::{Call, DecodingMode, PanelError};
use crate::prompts::{PromptError, PromptSet, label};
use crate::record::{ItemLine, Message, SearchLine, SearchPlace, Stage, Trajectory, TurnLine};
use crate::systems::case::{Case, Step};
use crate::systems::reading::reply::Passage;
use crate::systems::{Opening, System, Task};

/// Either system: with reviews MedReAct'N'MedReFlex, without MedReAct.
pub struct MedReflex {
    pub(super) protocol: Protocol,
    texts: Texts,
}

/// Agents by their place in the panel, and how each samples by the published configuration.
pub(super) struct Seats {
    pub(super) eval: usize,
    reflex: usize,
    pub(super) parser: usize,
    react_temperature: f32,
}

const REACT: usize = 0;
const WITH_REVIEWS: Seats = Seats { eval: 1, reflex: 2, parser: 3, react_temperature: 0.1 };
const ALONE: Seats = Seats { eval: 1, reflex: 1, parser: 1, react_temperature: 0.0 };

/// What has happened on a note so far.
pub(super) struct Course<'a> {
    pub(super) case: Case<'a, Note>,
    memory: Vec<String>,
    pub(super) trajectory: Trajectory,
    /// Every search of the note.
    pub(super) searched: Vec<SearchLine>,
}

/// A turn that ended, with its answer where it gave one.
pub(super) struct Turn {
    line: TurnLine,
    pub(super) history: Vec<Kept>,
    pub(super) action: Option<Action>,
}

impl System for MedReflex {
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.note()?;
        let mut line = case.open();
        let mut course = Course {
            case,
            memory: Vec::new(),
            trajectory: Trajectory::default(),
            searched: Vec::new(),
        };
        let (answer, turn) = match self.protocol.reviewing {
            None => {
                let turn = self.turn(&mut course, 0)?;
                let answer = self.parse(&course, &turn)?;
                (Some(answer), Some(turn))
            }
            Some(reviewing) => self.review_until_accepted(&mut course, &reviewing)?,
        };
        self.conclude(course, &mut line, answer, turn);
        Ok(line.into())
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let view = View { note: item.note()?, memory: &[], history: &[], as_objects: false };
        let messages = self.texts.react(view, 0, self.protocol.steps);
        Some(vec![Opening { member: REACT, messages }])
    }

    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let note = item.note()?;
        let chars = self.protocol.decoding.record_chars;
        let searches = match self.protocol.searching.results_kept {
            super::settings::ResultsKept::All => self.protocol.steps as usize,
            super::settings::ResultsKept::Last => 1,
        };
        let passages = searches * self.protocol.searching.rerank_top_k * passage_chars;
        let steps = self.protocol.steps as usize * 3 * chars;
        let reflexions = self.protocol.reviewing.map_or(0, |reviewing| {
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

    pub(super) fn seats(&self) -> &'static Seats {
        if self.protocol.reviewing.is_some() { &WITH_REVIEWS } else { &ALONE }
    }

    /// The answer that was accepted, or what exhaustion leaves, and the turn that it is of.
    fn review_until_accepted(
        &self,
        course: &mut Course<'_>,
        reviewing: &Reviewing,
    ) -> Result<(Option<Answer>, Option<Turn>), PanelError> {
        let compat = self.protocol.searching.release_compat;
        // The last turn with an answer, else the last; under compatibility parsed where it stood.
        let mut last: Option<(Turn, Option<Answer>)> = None;
        for round in 0..reviewing.turns {
            let mut turn = self.turn(course, round)?;
            let reviews = match turn.action {
                Some(_) => Some(self.review(course, reviewing, &mut turn)?),
                None => None,
            };
            course.trajectory.turns.push(turn.line.clone());
            // The release parses every answer, before it is accepted or not.
            let parsed = match (&turn.action, turn.line.accepted || compat) {
                (Some(_), true) => Some(self.parse(course, &turn)?),
                _ => None,
            };
            if turn.line.accepted {
                return Ok((parsed, Some(turn)));
            }
            // The release reflects after the last turn too, where nothing reads it.
            if round + 1 < reviewing.turns || compat {
                self.reflect(course, &turn, reviews.as_deref())?;
            }
            let had_answer = last.as_ref().is_some_and(|(turn, _)| turn.action.is_some());
            if turn.action.is_some() || !had_answer {
                last = Some((turn, parsed));
            }
        }
        course.trajectory.exhausted = true;
        match (reviewing.on_exhaustion, last) {
            (OnExhaustion::LastAnswer, Some((turn, Some(answer)))) => {
                Ok((Some(answer), Some(turn)))
            }
            (OnExhaustion::LastAnswer, Some((turn, None))) => {
                let answer = self.parse(course, &turn)?;
                Ok((Some(answer), Some(turn)))
            }
            _ => Ok((None, None)),
        }
    }

    /// Steps until an answer, or until they are used up. What an earlier turn did is seen through its reflexion alone.
    fn turn(&self, course: &mut Course<'_>, round: u32) -> Result<Turn, PanelError> {
        let mut turn = Turn {
            line: TurnLine { round, ..TurnLine::default() },
            history: Vec::new(),
            action: None,
        };
        for number in 0..self.protocol.steps {
            turn.line.steps += 1;
            let record = self.step(course, &turn, number)?;
            let found = match &record.action {
                Some(Action::Search { query }) => Some(self.search(course, round, number, query)?),
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
            turn.history.push(Kept { number, record, found });
            if turn.action.is_some() {
                break;
            }
        }
        if self.protocol.reviewing.is_none() {
            course.trajectory.turns.push(turn.line.clone());
        }
        Ok(turn)
    }

    fn step(
        &self,
        course: &Course<'_>,
        turn: &Turn,
        number: u32,
    ) -> Result<StepRecord, PanelError> {
        let view = self.view(course, &turn.history);
        let messages = self.texts.react(view, number, self.protocol.steps);
        let labels = match self.protocol.searching.cite {
            true => labels(&turn.history),
            false => Vec::new(),
        };
        let shape = shapes::step(&self.protocol.decoding, course.case.item, &labels);
        let step = Step::new(Stage::Aside, turn.line.round, "step", shape);
        let temperature = self.seats().react_temperature;
        let call = self.call(course, &step, REACT, number, messages, temperature);
        Ok(course.case.ask(call, step::read)?.value)
    }

    fn search(
        &self,
        course: &mut Course<'_>,
        round: u32,
        step: u32,
        query: &str,
    ) -> Result<SearchLine, PanelError> {
        let place = SearchPlace { round, step };
        let Searching { retrieve_top_k, rerank_top_k, .. } = self.protocol.searching;
        let found = course.case.search(place, query, retrieve_top_k, rerank_top_k)?;
        course.trajectory.searches.push(place);
        course.searched.push(found.clone());
        Ok(found)
    }

    /// Reviews the answer of a turn; gives the reviews that could be read.
    fn review(
        &self,
        course: &Course<'_>,
        reviewing: &Reviewing,
        turn: &mut Turn,
    ) -> Result<Vec<Review>, PanelError> {
        let compat = self.protocol.searching.release_compat;
        // In the release the history lacks the answer when it is reviewed.
        let shown = turn.history.len() - usize::from(compat);
        let messages = self.texts.review(self.view(course, &turn.history[..shown]));
        let shape = shapes::review(&self.protocol.decoding);
        let step = Step::new(Stage::Aside, turn.line.round, "review", shape);
        let calls = (0..reviewing.reviewers).map(|reviewer| {
            self.call(course, &step, self.seats().eval, reviewer, messages.clone(), 1.0)
        });
        let asked = course.case.ask_all(calls, review::read)?;
        let all = asked.len();
        let reviews: Vec<Review> = asked
            .into_iter()
            .map(|asked| asked.value)
            .filter(|one| one.final_score().is_some())
            .collect();
        turn.line.unread_reviews = (all - reviews.len()) as u32;
        let scores = reviews.iter().filter_map(Review::final_score).collect();
        decide(reviewing, scores, compat, &mut turn.line);
        Ok(reviews)
    }

    fn reflect(
        &self,
        course: &mut Course<'_>,
        turn: &Turn,
        reviews: Option<&[Review]>,
    ) -> Result<(), PanelError> {
        let messages = self.texts.reflex(self.view(course, &turn.history), reviews);
        let shape = self.protocol.decoding.passage();
        let step = Step::new(Stage::Aside, turn.line.round, "reflexion", shape);
        let call = self.call(course, &step, self.seats().reflex, 0, messages, 0.1);
        let Passage { text } = course.case.ask(call, |text, _| Passage::said(text))?.value;
        if !text.is_empty() {
            course.trajectory.reflexions += 1;
            course.memory.push(text);
        }
        Ok(())
    }

    fn parse(&self, course: &Course<'_>, turn: &Turn) -> Result<Answer, PanelError> {
        let note = course.case.item;
        let messages = self.texts.parse(self.view(course, &turn.history));
        let shape = shapes::answer(&self.protocol.decoding, note);
        let step = Step::new(Stage::Final, turn.line.round, "parse", shape);
        let call = self.call(course, &step, self.seats().parser, 0, messages, 0.0);
        let action = turn.action.as_ref();
        let read = |text: &str, finish_reason| answer::read(text, finish_reason, note, action);
        Ok(course.case.ask(call, read)?.value)
    }

    fn view<'a>(&self, course: &'a Course<'_>, history: &'a [Kept]) -> View<'a> {
        let as_objects = course.case.task.panel.decoding != DecodingMode::Text;
        View { note: course.case.item, memory: &course.memory, history, as_objects }
    }

    /// The draw `sample` of a member.
    fn call(
        &self,
        course: &Course<'_>,
        step: &Step,
        member: usize,
        sample: u32,
        messages: Vec<Message>,
        temperature: f32,
    ) -> Call {
        let agent = course.case.task.panel.members[member].agent.clone();
        let mut call = course.case.call(step, member, agent, messages);
        call.key.sample = sample;
        call.temperature = match self.protocol.searching.temperatures {
            Temperatures::Paper => Some(temperature),
            Temperatures::Model => None,
        };
        call
    }
}

/// The labels of the passages in a history.
fn labels(history: &[Kept]) -> Vec<String> {
    let found = history.iter().filter_map(|kept| kept.found.as_ref());
    found.flat_map(|found| (1..=found.shown.len()).map(|rank| label(found.step, rank))).collect()
}
