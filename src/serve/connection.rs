//! Serves one HTTP/1.1 connection, with timeouts for headers and for clients that read nothing.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};
use tower::Service;

use super::app::Phase;
use super::options::Limits;

/// The largest head of a request.
const MOST_HEAD_BYTES: usize = 32 << 10;
const MOST_HEADERS: usize = 100;

/// Answers requests until the client or the server closes the connection.
pub async fn serve<S, H>(stream: S, handler: H, limits: Limits, mut phase: watch::Receiver<Phase>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone,
{
    let stream = StallGuard::new(stream, limits.stall_timeout);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(handler));
    tokio::pin!(connection);
    let mut is_draining = false;
    loop {
        tokio::select! {
            // After an error the client is gone, or has received it.
            _ = connection.as_mut() => return,
            changed = phase.changed(), if !is_draining => {
                is_draining = true;
                if changed.is_ok() {
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// A stream whose writes time out if the client reads nothing.
struct StallGuard<S> {
    stream: S,
    patience: Duration,
    /// The timer of a pending write.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    fn new(stream: S, patience: Duration) -> StallGuard<S> {
        StallGuard { stream, patience, waiting: None }
    }

    /// Starts or stops the timer after a write.
    fn watch<T>(&mut self, context: &mut Context<'_>, outcome: Poll<Result<T>>) -> Poll<Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the reader takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_reader_that_takes_nothing_ends_the_stream_and_a_slow_one_does_not() {
        let patience = Duration::from_millis(100);
        let (writer, mut reader) = tokio::io::duplex(4);
        let mut guard = StallGuard::new(writer, patience);
        let slow = async {
            let mut all = Vec::new();
            let mut two = [0; 2];
            for _ in 0..4 {
                sleep(patience / 2).await;
                reader.read_exact(&mut two).await.unwrap();
                all.extend(two);
            }
            all
        };
        let (written, read) = tokio::join!(guard.write_all(b"abcdefgh"), slow);
        written.unwrap();
        assert_eq!(read, b"abcdefgh");
        guard.write_all(b"1234").await.unwrap();
        let error = guard.write_all(b"5").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
