//! What an engine tells whoever asked: that a request runs, its text piece by piece, and its end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::EngineError;
use super::error::{failure_of, lost};
use super::request::{Completion, TokenLogprobs};

/// What an engine says of a request: `Admitted` at most once, then pieces, then `Done`, once.
#[derive(Clone, Debug)]
pub enum Event {
    /// It joins the running batch for the first time. One that needs no computation is never admitted.
    Admitted {
        /// Of its prompt, found in the prefix index.
        cached_tokens: usize,
    },
    /// Text that nothing later changes, whole characters only; sent where the request asks for pieces.
    ///
    /// A token comes with the piece that holds the last byte of its text, and a token without text (an end of turn)
    /// with a piece of the text before it or after it. All pieces together hold exactly the `text`, `tokens` and `logprobs` of
    /// the completion. The last one, right before `Done`, has no text where only such tokens are left.
    Piece {
        text: String,
        /// The tokens that end in it.
        tokens: Vec<u32>,
        /// One a token where they were asked for.
        logprobs: Vec<Option<TokenLogprobs>>,
    },
    /// The end: the completion, or why there is none.
    Done(Result<Box<Completion>, EngineError>),
}

/// Takes a request's events, one after another. It runs on the engine's threads, so it must return at once and never panic.
pub type OnEvent = Box<dyn FnMut(Event) + Send>;

/// The claim on a request that was submitted with a closure. Dropping it cancels the request: the sequence leaves before
/// the next step, and its closure is dropped without `Done`.
#[derive(Debug)]
#[must_use = "dropping it cancels the request"]
pub struct RequestHandle {
    _wanted: Arc<()>,
}

/// The engine's side of a request. Dropped before its end, it gives the engine's failure as its end.
pub(super) struct Events {
    on_event: Option<OnEvent>,
    wanted: Weak<()>,
    failure: Arc<OnceLock<EngineError>>,
}

impl Events {
    pub fn new(on_event: OnEvent, failure: Arc<OnceLock<EngineError>>) -> (Events, RequestHandle) {
        let wanted = Arc::new(());
        let events = Events { on_event: Some(on_event), wanted: Arc::downgrade(&wanted), failure };
        (events, RequestHandle { _wanted: wanted })
    }

    pub fn is_cancelled(&self) -> bool {
        self.wanted.strong_count() == 0
    }

    pub fn send(&mut self, event: Event) {
        if let Some(on_event) = &mut self.on_event {
            on_event(event);
        }
    }

    pub fn end(mut self, result: Result<Completion, EngineError>) {
        self.send(Event::Done(result.map(Box::new)));
        self.silence();
    }

    pub fn silence(&mut self) {
        self.on_event = None;
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if !self.is_cancelled() {
            let failure = failure_of(&self.failure);
            self.send(Event::Done(Err(failure)));
        }
    }
}

/// A claim on a completion that is waited for. Dropping it cancels the request.
#[derive(Debug)]
pub struct Ticket {
    events: Receiver<Event>,
    _handle: RequestHandle,
}

impl Ticket {
    /// What `submit` was given to take the events is what the ticket waits for.
    pub(super) fn of(
        submit: impl FnOnce(OnEvent) -> Result<RequestHandle, EngineError>,
    ) -> Result<Ticket, EngineError> {
        let (sender, events) = channel();
        let handle = submit(Box::new(move |event| {
            // The ticket may be gone.
            let _ = sender.send(event);
        }))?;
        Ok(Ticket { events, _handle: handle })
    }

    /// Waits for the completion; `on_piece` sees the text as it comes, if the request asked for pieces.
    pub fn wait_with(self, mut on_piece: impl FnMut(&str)) -> Result<Completion, EngineError> {
        loop {
            match self.events.recv() {
                Ok(Event::Admitted { .. }) => {}
                Ok(Event::Piece { text, .. }) if text.is_empty() => {}
                Ok(Event::Piece { text, .. }) => on_piece(&text),
                Ok(Event::Done(result)) => return result.map(|completion| *completion),
                // A ticket that is held always hears of its request's end.
                Err(_) => return Err(lost()),
            }
        }
    }

    /// Waits for the completion while `wanted` says so; `None` once it does not, and the request is cancelled.
    pub fn wait_while(self, wanted: impl Fn() -> bool) -> Option<Result<Completion, EngineError>> {
        const PATIENCE: Duration = Duration::from_millis(100);
        while wanted() {
            match self.events.recv_timeout(PATIENCE) {
                Ok(Event::Done(result)) => return Some(result.map(|completion| *completion)),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Some(Err(lost())),
            }
        }
        None
    }

    pub fn wait(self) -> Result<Completion, EngineError> {
        self.wait_with(|_| {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a request after `act`, which is given the engine's side of it and its claim.
    fn told(act: impl FnOnce(Events, RequestHandle)) -> Vec<Event> {
        let (sender, receiver) = channel();
        let failure = Arc::new(OnceLock::new());
        let _ = failure.set(EngineError::Died { reason: "for a test".to_owned() });
        let on_event: OnEvent = Box::new(move |event| sender.send(event).unwrap());
        let (events, handle) = Events::new(on_event, failure);
        act(events, handle);
        receiver.try_iter().collect()
    }

    #[test]
    fn a_request_that_is_left_over_hears_of_the_engines_failure() {
        let told = told(|events, _handle| drop(events));
        let [Event::Done(Err(error))] = &told[..] else { panic!("{told:?}") };
        assert_eq!(error.to_string(), "the engine died: for a test");
    }

    #[test]
    fn an_end_comes_once() {
        let told = told(|events, _handle| events.end(Err(EngineError::EmptyPrompt)));
        assert!(matches!(&told[..], [Event::Done(Err(EngineError::EmptyPrompt))]), "{told:?}");
    }

    #[test]
    fn what_is_cancelled_or_refused_has_no_end() {
        let cancelled = told(|events, handle| {
            drop(handle);
            assert!(events.is_cancelled());
        });
        let refused = told(|mut events, _handle| events.silence());
        assert!(cancelled.is_empty() && refused.is_empty());
    }
}
