//! Launches that are kept and run again as one, as the driver's graphs are: with the arguments they had.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{Arguments, Launch, Stream};

/// A launch, with its arguments as they are then.
pub(super) type Recorded = (Launch, Arguments);

/// A step's launches, kept.
#[derive(Debug)]
pub struct Graph(Vec<Recorded>);

impl Stream {
    /// Runs the launches of `body`, and keeps them unless they are refused; then `body` runs once more.
    pub fn capture(&self, mut body: impl FnMut()) -> Option<Graph> {
        let graph = self.record(&mut body);
        match &graph {
            Some(graph) => self.replay(graph),
            None => body(),
        }
        graph
    }

    fn record(&self, body: impl FnOnce()) -> Option<Graph> {
        let keep = |launches| {
            let mut recorded = self.state.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *recorded, launches)
        };
        keep(Some(Vec::new()));
        body();
        keep(None).filter(|_| !self.state.refuses.load(Ordering::Relaxed)).map(Graph)
    }

    pub fn replay(&self, graph: &Graph) {
        self.state.replays.fetch_add(1, Ordering::Relaxed);
        for (launch, arguments) in &graph.0 {
            self.run(*launch, arguments.clone());
        }
    }

    /// From here on no launch can be recorded, or each can.
    #[cfg(test)]
    pub fn refuse_recording(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::Relaxed);
    }

    /// How often a graph was launched.
    #[cfg(test)]
    pub fn replays(&self) -> usize {
        self.state.replays.load(Ordering::Relaxed)
    }
}
