//! The cases that clients ask for again and the sessions of the web page, kept in memory by one thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use self::room::{End, excess, expired};
use super::{Ask, CaseEvent};
use crate::experiment::case::Worked;
use crate::record::CallLine;
use crate::serve::error::{ApiError, Code};
use crate::serve::guard::Identity;
use crate::serve::session::Sessions;

mod room;

/// What the texts of all kept cases may take, in bytes; the oldest that has ended of whoever keeps most of them is dropped first.
const MOST_BYTES: usize = 256 << 20;
/// Streams that follow a case at once.
const MOST_FOLLOWERS: usize = 16;
/// How often expired cases and sessions are removed.
const SWEEP: Duration = Duration::from_secs(30);

pub struct CaseHead {
    pub id: String,
    /// Whoever sent it; `None` if there are no keys.
    pub owner: Option<Identity>,
    pub ask: Ask,
    /// In UTC.
    pub created_at: String,
}

#[derive(Clone)]
pub struct KeptCase {
    pub head: Arc<CaseHead>,
    pub has_begun: bool,
    /// In the order in which they finished.
    pub calls: Vec<Arc<CallLine>>,
    pub outcome: Option<Arc<Result<Worked, ApiError>>>,
    /// Whether a user gave feedback on it.
    pub is_rated: bool,
}

/// The id of a case, and the owner who asks for it.
#[derive(Clone)]
pub struct Named {
    pub id: String,
    pub owner: Option<Identity>,
}

/// Work for the thread that owns the state.
type Message = Box<dyn FnOnce(&mut State) + Send>;

/// A handle to the thread that keeps the cases.
pub struct CaseStore {
    messages: Sender<Message>,
}

impl CaseStore {
    pub fn start() -> std::io::Result<CaseStore> {
        let (messages, inbox) = channel();
        let run = move || State::default().run(&inbox);
        std::thread::Builder::new().name("serve-cases".to_owned()).spawn(run)?;
        Ok(CaseStore { messages })
    }

    fn tell(&self, work: impl FnOnce(&mut State) + Send + 'static) {
        // The thread ends only with the server.
        let _ = self.messages.send(Box::new(work));
    }

    /// The result of `work`; `None` if the thread is gone.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(move |state| {
            // The receiver may be gone.
            let _ = reply.send(work(state));
        });
        answer.await.ok()
    }

    /// Keeps a case.
    ///
    /// # Errors
    /// A store that is full of cases that wait or run.
    pub async fn open(&self, head: CaseHead) -> Result<(), ApiError> {
        let is_kept = self.ask(move |state| state.open(Arc::new(head))).await;
        match is_kept.unwrap_or_default() {
            true => Ok(()),
            false => {
                let message = "the cases that wait or run take all that is kept of cases";
                Err(ApiError::new(Code::QueueFull, message).retry_after(10))
            }
        }
    }

    /// Removes a case that could not be queued.
    pub fn close(&self, id: String) {
        self.tell(move |state| state.remove(&id));
    }

    /// Records that the owner gives feedback on a case: once.
    pub async fn rate(&self, case: Named) -> Result<(), ApiError> {
        let rate = move |state: &mut State| {
            let kept = state.find(&case)?;
            Some(std::mem::replace(&mut kept.case.is_rated, true))
        };
        match self.ask(rate).await.flatten() {
            None => Err(unknown()),
            Some(false) => Ok(()),
            Some(true) => {
                let message = "this case has your judgement already: it is in the audit log";
                Err(ApiError::new(Code::InvalidValue, message))
            }
        }
    }

    /// Takes back [`CaseStore::rate`]: the feedback could not be logged.
    pub fn unrate(&self, id: String) {
        self.tell(move |state| {
            if let Some(kept) = state.get(&id) {
                kept.case.is_rated = false;
            }
        });
    }

    /// A callback that records the events of a case.
    pub fn recorder(&self, id: String) -> super::pool::OnEvent {
        let messages = self.messages.clone();
        Box::new(move |event| {
            let id = id.clone();
            let _ = messages.send(Box::new(move |state: &mut State| state.record(&id, event)));
        })
    }

    /// # Errors
    /// A case that does not exist, has expired, or was sent by another key.
    pub async fn look(&self, case: Named) -> Result<KeptCase, ApiError> {
        let look = move |state: &mut State| Some(state.find(&case)?.case.clone());
        self.ask(look).await.flatten().ok_or_else(unknown)
    }

    /// Sends the past events of a case to `events`, then each new one; the sender is dropped when the case ends.
    ///
    /// # Errors
    /// See [`CaseStore::look`]; as many that follow as there may be.
    pub async fn follow(
        &self,
        case: Named,
        events: UnboundedSender<CaseEvent>,
    ) -> Result<(), ApiError> {
        let follow = move |state: &mut State| {
            let kept = state.find(&case)?;
            for event in kept.case.so_far() {
                let _ = events.send(event);
            }
            if kept.ended_at.is_none() {
                // Those that have left are known by that alone.
                kept.followers.retain(|follower| !follower.is_closed());
                if kept.followers.len() >= MOST_FOLLOWERS {
                    return Some(false);
                }
                kept.followers.push(events);
            }
            Some(true)
        };
        match self.ask(follow).await.flatten().ok_or_else(unknown)? {
            true => Ok(()),
            false => {
                let message = format!("{MOST_FOLLOWERS} streams follow this case already");
                Err(ApiError::new(Code::KeyLimit, message).retry_after(2))
            }
        }
    }

    /// The owner's cases, newest first.
    pub async fn list(&self, owner: Option<Identity>) -> Vec<KeptCase> {
        let list = move |state: &mut State| {
            let cases = state.cases.values().rev().map(|kept| &kept.case);
            cases.filter(|case| case.head.owner == owner).cloned().collect()
        };
        self.ask(list).await.unwrap_or_default()
    }

    /// The result of `work` on the sessions; `None` if the thread is gone.
    pub async fn sessions<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Sessions) -> T + Send + 'static,
    ) -> Option<T> {
        self.ask(move |state| work(&mut state.sessions)).await
    }
}

fn unknown() -> ApiError {
    let message = "there is no such case; cases are kept for an hour, and seen by the key that sent them alone";
    ApiError::new(Code::CaseNotFound, message)
}

#[derive(Default)]
struct State {
    /// By order of arrival.
    cases: BTreeMap<u64, Kept>,
    /// The arrival number of each case.
    numbers: HashMap<String, u64>,
    arrived: u64,
    /// Of all cases.
    bytes: usize,
    sessions: Sessions,
}

struct Kept {
    case: KeptCase,
    /// Of its texts.
    bytes: usize,
    followers: Vec<UnboundedSender<CaseEvent>>,
    ended_at: Option<Instant>,
}

impl State {
    fn run(mut self, inbox: &Receiver<Message>) {
        let mut swept = Instant::now();
        loop {
            match inbox.recv_timeout(SWEEP) {
                Ok(work) => work(&mut self),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if swept.elapsed() >= SWEEP {
                swept = Instant::now();
                self.sweep(swept);
            }
        }
    }

    /// Whether there is room for the case, which is kept then.
    fn open(&mut self, head: Arc<CaseHead>) -> bool {
        self.sweep(Instant::now());
        let bytes = head.ask.bytes();
        self.make_room(bytes);
        if self.bytes + bytes > MOST_BYTES {
            return false;
        }
        self.bytes += bytes;
        self.arrived += 1;
        self.numbers.insert(head.id.clone(), self.arrived);
        let case =
            KeptCase { head, has_begun: false, calls: Vec::new(), outcome: None, is_rated: false };
        let kept = Kept { case, bytes, followers: Vec::new(), ended_at: None };
        self.cases.insert(self.arrived, kept);
        true
    }

    /// Removes ended cases until so many bytes fit, or none is left.
    fn make_room(&mut self, bytes: usize) {
        let beyond = (self.bytes + bytes).saturating_sub(MOST_BYTES);
        if beyond == 0 {
            return;
        }
        for number in excess(self.ends(), beyond, |end| end.bytes) {
            self.forget(number);
        }
    }

    /// When each case ended, in the order of arrival.
    fn ends(&self) -> Vec<End> {
        let end = |(number, kept): (&u64, &Kept)| End {
            number: *number,
            owner: kept.case.head.owner,
            bytes: kept.bytes,
            at: kept.ended_at,
        };
        self.cases.iter().map(end).collect()
    }

    fn record(&mut self, id: &str, event: CaseEvent) {
        let more = event.bytes();
        let Some(kept) = self.get(id) else { return };
        kept.bytes += more;
        let is_last = kept.case.apply(event.clone());
        // Followers that are gone are removed.
        kept.followers.retain(|follower| follower.send(event.clone()).is_ok());
        if is_last {
            kept.followers.clear();
            kept.ended_at = Some(Instant::now());
        }
        self.bytes += more;
        self.make_room(0);
    }

    fn get(&mut self, id: &str) -> Option<&mut Kept> {
        self.cases.get_mut(self.numbers.get(id)?)
    }

    fn find(&mut self, case: &Named) -> Option<&mut Kept> {
        self.get(&case.id).filter(|kept| kept.case.head.owner == case.owner)
    }

    fn remove(&mut self, id: &str) {
        if let Some(number) = self.numbers.remove(id) {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(kept) = self.cases.remove(&number) {
            self.numbers.remove(&kept.case.head.id);
            self.bytes -= kept.bytes;
        }
    }

    /// Removes old cases, and ended ones if there is no room for another. Running cases stay; the server's queue limits their number.
    fn sweep(&mut self, now: Instant) {
        self.sessions.sweep(now);
        for number in expired(self.ends(), now) {
            self.forget(number);
        }
    }
}

impl KeptCase {
    /// Applies an event; returns whether it is the last.
    fn apply(&mut self, event: CaseEvent) -> bool {
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

    fn so_far(&self) -> Vec<CaseEvent> {
        let begun = self.has_begun.then_some(CaseEvent::Begun);
        let calls = self.calls.iter().cloned().map(CaseEvent::Call);
        let ended = self.outcome.clone().map(CaseEvent::Ended);
        begun.into_iter().chain(calls).chain(ended).collect()
    }
}
