//! Steps kept as graphs.

use std::sync::atomic::Ordering;

use cudarc::driver::sys;

use super::Stream;
use super::gpu::check;

#[derive(Debug)]
pub struct Graph(sys::CUgraphExec);

// SAFETY: a graph is launched by the engine's thread that owns it, whichever that is.
unsafe impl Send for Graph {}
// SAFETY: `replay` takes the stream that orders its launches.
unsafe impl Sync for Graph {}

impl Stream {
    /// Runs the launches of `body`, and keeps them where the driver can; where it cannot, `body` runs once more.
    pub fn capture(&self, mut body: impl FnMut()) -> Option<Graph> {
        let graph = match self.0.checks {
            true => None,
            false => self.record(&mut body),
        };
        match &graph {
            Some(graph) => self.replay(graph),
            None => {
                // Launches that were refused came after the step's upload, and so do these.
                self.0.after_copy.store(true, Ordering::Relaxed);
                body();
            }
        }
        graph
    }

    /// Keeps the launches of `body` without running them; nothing if the driver refuses any of them.
    fn record(&self, body: impl FnOnce()) -> Option<Graph> {
        self.0.gpu.enter();
        // What other engines' threads allocate or load meanwhile is no matter.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: a live stream.
        check(unsafe { sys::cuStreamBeginCapture_v2(self.0.stream, mode) }).ok()?;
        let is_whole = self.0.failures.record(body);
        let (mut graph, mut instance) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: places for handles; the template is destroyed once its instance is made.
        let made = unsafe {
            check(sys::cuStreamEndCapture(self.0.stream, &raw mut graph)).and_then(|()| {
                let made = sys::cuGraphInstantiateWithFlags(&raw mut instance, graph, 0);
                sys::cuGraphDestroy(graph);
                check(made)
            })
        };
        let graph = made.ok().map(|()| Graph(instance));
        graph.filter(|_| is_whole)
    }

    pub fn replay(&self, graph: &Graph) {
        self.0.gpu.enter();
        // SAFETY: what it launches was captured on this stream, and what it uses lives as long as the scratch
        // that keeps the graph.
        self.note(unsafe { sys::cuGraphLaunch(graph.0, self.0.stream) });
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `capture`, launched no more.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}
