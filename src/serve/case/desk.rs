//! The cases that are asked for again, and the sessions of the page: one thread owns them, and is told and asked by messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::{Ask, CaseEvent};
use crate::experiment::case::Worked;
use crate::record::CallLine;
use crate::serve::error::{ApiError, Code};
use crate::serve::session::Sessions;

/// How long a case is kept once it has ended.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Cases at a time; the oldest that has ended goes first.
const MOST: usize = 1000;
/// How often what is over is looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// What a case began with.
pub struct CaseHead {
    pub id: String,
    /// The name of the key that sent it; `None` where there are no keys.
    pub owner: Option<String>,
    pub ask: Ask,
    /// In UTC.
    pub created_at: String,
}

/// A case as it stands.
#[derive(Clone)]
pub struct Case {
    pub head: Arc<CaseHead>,
    pub has_begun: bool,
    /// In the order in which they finished.
    pub calls: Vec<Arc<CallLine>>,
    pub outcome: Option<Arc<Result<Worked, ApiError>>>,
    /// Whether somebody said what they think of it.
    pub is_rated: bool,
}

/// Somebody's case.
#[derive(Clone)]
pub struct Named {
    pub id: String,
    pub owner: Option<String>,
}

/// What the desk is told and asked.
pub enum Message {
    Open(Arc<CaseHead>),
    /// Forgets a case that could not begin.
    Close {
        id: String,
    },
    Happened {
        id: String,
        event: CaseEvent,
    },
    /// Somebody said what they think of it.
    Rated {
        id: String,
    },
    Look {
        case: Named,
        reply: oneshot::Sender<Option<Case>>,
    },
    /// What happened so far, then what happens; the sender is dropped with the case.
    Follow {
        case: Named,
        events: UnboundedSender<CaseEvent>,
        reply: oneshot::Sender<bool>,
    },
    /// The owner's cases, the newest first.
    List {
        owner: Option<String>,
        reply: oneshot::Sender<Vec<Case>>,
    },
    /// What only the sessions' owner can do.
    Sessions(Box<dyn FnOnce(&mut Sessions) + Send>),
}

/// The way to the desk's thread.
pub struct Desk {
    messages: Sender<Message>,
}

impl Desk {
    /// # Errors
    /// A thread that cannot be started.
    pub fn start() -> std::io::Result<Desk> {
        let (messages, inbox) = channel();
        let keep = move || Books::default().keep(&inbox);
        std::thread::Builder::new().name("serve-desk".to_owned()).spawn(keep)?;
        Ok(Desk { messages })
    }

    pub fn tell(&self, message: Message) {
        // The thread ends with the server alone.
        let _ = self.messages.send(message);
    }

    /// Tells of what happens to a case.
    pub fn teller(&self, id: String) -> super::pool::Tell {
        let messages = self.messages.clone();
        Box::new(move |event| {
            let _ = messages.send(Message::Happened { id: id.clone(), event });
        })
    }

    /// # Errors
    /// A case that there is not, or not any more, or that another key sent.
    pub async fn look(&self, case: Named) -> Result<Case, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.tell(Message::Look { case, reply });
        answer.await.ok().flatten().ok_or_else(unknown)
    }

    /// # Errors
    /// See [`Desk::look`].
    pub async fn follow(
        &self,
        case: Named,
        events: UnboundedSender<CaseEvent>,
    ) -> Result<(), ApiError> {
        let (reply, answer) = oneshot::channel();
        self.tell(Message::Follow { case, events, reply });
        match answer.await {
            Ok(true) => Ok(()),
            _ => Err(unknown()),
        }
    }

    /// The owner's cases, the newest first.
    pub async fn list(&self, owner: Option<String>) -> Vec<Case> {
        let (reply, answer) = oneshot::channel();
        self.tell(Message::List { owner, reply });
        answer.await.unwrap_or_default()
    }

    /// What `work` makes of the sessions; `None` where the desk is gone.
    pub async fn sessions<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Sessions) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(Message::Sessions(Box::new(move |sessions| {
            // Whoever asked may be gone.
            let _ = reply.send(work(sessions));
        })));
        answer.await.ok()
    }
}

fn unknown() -> ApiError {
    let message = "there is no such case; cases are kept for an hour, and seen by the key that sent them alone";
    ApiError::new(Code::CaseNotFound, message)
}

/// What the desk keeps.
#[derive(Default)]
struct Books {
    /// By when they came.
    cases: BTreeMap<u64, Kept>,
    /// The place of each case.
    places: HashMap<String, u64>,
    came: u64,
    sessions: Sessions,
}

struct Kept {
    case: Case,
    followers: Vec<UnboundedSender<CaseEvent>>,
    ended_at: Option<Instant>,
}

impl Books {
    fn keep(mut self, inbox: &Receiver<Message>) {
        let mut swept = Instant::now();
        loop {
            match inbox.recv_timeout(SWEEP) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if swept.elapsed() >= SWEEP {
                swept = Instant::now();
                self.sweep(swept);
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Open(head) => self.open(head),
            Message::Close { id } => {
                if let Some(place) = self.places.remove(&id) {
                    self.cases.remove(&place);
                }
            }
            Message::Rated { id } => {
                if let Some(kept) = self.places.get(&id).and_then(|place| self.cases.get_mut(place))
                {
                    kept.case.is_rated = true;
                }
            }
            Message::Happened { id, event } => self.happened(&id, event),
            Message::Look { case, reply } => {
                let _ = reply.send(self.find(&case).map(|kept| kept.case.clone()));
            }
            Message::Follow { case, events, reply } => {
                let found = self.find(&case);
                let is_there = found.is_some();
                if let Some(kept) = found {
                    for event in kept.case.so_far() {
                        let _ = events.send(event);
                    }
                    if kept.ended_at.is_none() {
                        kept.followers.push(events);
                    }
                }
                let _ = reply.send(is_there);
            }
            Message::List { owner, reply } => {
                let own = self.cases.values().rev().map(|kept| &kept.case);
                let own = own.filter(|case| case.head.owner == owner).cloned();
                let _ = reply.send(own.collect());
            }
            Message::Sessions(work) => work(&mut self.sessions),
        }
    }

    fn open(&mut self, head: Arc<CaseHead>) {
        self.sweep(Instant::now());
        self.came += 1;
        self.places.insert(head.id.clone(), self.came);
        let case =
            Case { head, has_begun: false, calls: Vec::new(), outcome: None, is_rated: false };
        self.cases.insert(self.came, Kept { case, followers: Vec::new(), ended_at: None });
    }

    fn happened(&mut self, id: &str, event: CaseEvent) {
        let Some(kept) = self.places.get(id).and_then(|place| self.cases.get_mut(place)) else {
            return;
        };
        let is_last = kept.case.take(event.clone());
        // A follower that is gone is left out from now on.
        kept.followers.retain(|follower| follower.send(event.clone()).is_ok());
        if is_last {
            kept.followers.clear();
            kept.ended_at = Some(Instant::now());
        }
    }

    fn find(&mut self, case: &Named) -> Option<&mut Kept> {
        let kept = self.cases.get_mut(self.places.get(&case.id)?)?;
        (kept.case.head.owner == case.owner).then_some(kept)
    }

    /// Forgets what is over: old cases, and the oldest where there is no room for another. Those at work stay; the server's queue
    /// bounds them.
    fn sweep(&mut self, now: Instant) {
        self.sessions.sweep(now);
        let ends = self.cases.iter().map(|(place, kept)| End { place: *place, at: kept.ended_at });
        for place in over(&ends.collect::<Vec<_>>(), now) {
            if let Some(kept) = self.cases.remove(&place) {
                self.places.remove(&kept.case.head.id);
            }
        }
    }
}

/// When the case of a place ended; `None` while it is at work.
struct End {
    place: u64,
    at: Option<Instant>,
}

/// The places to be left by another case, of cases in the order in which they came.
fn over(cases: &[End], now: Instant) -> Vec<u64> {
    let is_old = |end: &&End| end.at.is_some_and(|at| now - at >= KEPT);
    let mut gone: Vec<u64> = cases.iter().filter(is_old).map(|end| end.place).collect();
    let ended = cases.iter().filter(|end| end.at.is_some() && !is_old(end));
    let beyond = (cases.len() - gone.len() + 1).saturating_sub(MOST);
    gone.extend(ended.map(|end| end.place).take(beyond));
    gone
}

impl Case {
    /// Takes an event in. Whether it is the last.
    fn take(&mut self, event: CaseEvent) -> bool {
        match event {
            CaseEvent::Begun => self.has_begun = true,
            CaseEvent::Call(call) => self.calls.push(call),
            CaseEvent::Ended(outcome) => {
                self.outcome = Some(outcome);
                return true;
            }
        }
        false
    }

    /// What happened, as it was told.
    fn so_far(&self) -> Vec<CaseEvent> {
        let begun = self.has_begun.then_some(CaseEvent::Begun);
        let calls = self.calls.iter().cloned().map(CaseEvent::Call);
        let ended = self.outcome.clone().map(CaseEvent::Ended);
        begun.into_iter().chain(calls).chain(ended).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_kept_for_an_hour_after_their_end_and_a_thousand_of_them() {
        let start = Instant::now();
        let minutes = |count: u64| start + Duration::from_secs(60 * count);
        let of = |at: Option<Instant>| move |place| End { place, at };
        let few: Vec<End> = (0..3).map(|place| End { place, at: Some(minutes(place)) }).collect();
        assert!(over(&few, minutes(59)).is_empty());
        assert_eq!(over(&few, minutes(61)), [0, 1]);
        // What is at work stays for ever, what ended makes room, the oldest first.
        let full: Vec<End> = (0..10).map(of(None)).chain((10..1000).map(of(Some(start)))).collect();
        assert!(over(&full[..999], start).is_empty());
        assert_eq!(over(&full, start), [10]);
        assert_eq!(over(&full, minutes(60)).len(), 990);
        let at_work: Vec<End> = (0..1200).map(of(None)).collect();
        assert!(over(&at_work, minutes(999)).is_empty());
    }
}
