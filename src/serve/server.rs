//! The life cycle of a server: bind, load, serve, drain.

use std::net::{IpAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::time::{interval, sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

use super::app::{App, Keys, Phase, give_way};
use super::keys;
use super::listener::{accept, bind};
use super::models::Served;
use super::options::ServeOptions;
use super::router::router;
use crate::console;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::record::count;

/// The number of threads for connections; engines have their own.
const WORKERS: usize = 2;
/// The largest head of a request.
const MOST_HEAD_BYTES: usize = 32 << 10;
const MOST_HEADERS: usize = 100;
/// The pause after a failed accept, which means that a resource is exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time to send final errors to aborted connections.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often engines are checked.
const WATCH: Duration = Duration::from_millis(500);

/// Serves the models that `load` returns until a signal ends the server. The socket is bound first; then the process enters its sandbox;
/// and only then is anybody's connection taken, and are models loaded.
///
/// # Errors
/// An address that is in use; keys that cannot be read; models that cannot be loaded; an engine that died; requests
/// that were aborted at the end.
pub fn serve(
    options: ServeOptions,
    enter: impl FnOnce() -> Result<(), Failure>,
    load: impl FnOnce() -> Result<Served, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let bound = bind(&options.listen)?;
    enter()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("serve")
        .on_thread_start(give_way)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(run(options, bound, load));
    // Work in blocking threads is abandoned.
    runtime.shutdown_background();
    ended
}

async fn run(
    options: ServeOptions,
    bound: TcpListener,
    load: impl FnOnce() -> Result<Served, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (key_sender, keys) = watch::channel(read_keys(&options)?);
    let (phase_sender, phase) = watch::channel(Phase::Serving);
    let mut hangup = signal(SignalKind::hangup())?;
    let mut ending = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
    console::say(format!("listening on http://{}", bound.local_addr()?))?;
    bound.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(bound)?;
    let app = Arc::new(App::new(options, phase.clone(), keys)?);
    let (sender, mut loaded) = oneshot::channel();
    let loading = app.clone();
    // The receiver is gone if a signal came first.
    let work = move || drop(sender.send(load().map(|served| loading.begin(served))));
    std::thread::Builder::new().name("load".to_owned()).spawn(work)?;
    let router = router(&app);
    let open = GracefulShutdown::new();
    let mut watch = interval(WATCH);
    let mut is_loaded = false;
    let outcome = loop {
        tokio::select! {
            accepted = accept(&listener) => match accepted {
                Ok((accepted, peer)) => {
                    let (app, router, watcher) = (app.clone(), router.clone(), open.watcher());
                    tokio::spawn(async move {
                        app.connections.fetch_add(1, Relaxed);
                        answer(&app, router, accepted, peer, watcher).await;
                        app.connections.fetch_sub(1, Relaxed);
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            _ = watch.tick() => {
                if let Some(error) = app.loaded().and_then(Served::failure) {
                    let hint = "see the log; the service manager may restart it";
                    break Err(Failure::machine(error.to_string(), hint));
                }
            }
            result = &mut loaded, if !is_loaded => match result {
                Ok(Ok(())) => {
                    is_loaded = true;
                    console::note("ready");
                }
                Ok(Err(failure)) => break Err(failure),
                Err(_) => {
                    let message = "loading the models failed: see the message above";
                    break Err(std::io::Error::other(message).into());
                }
            },
            _ = hangup.recv() => reload(&app.options, &key_sender),
            () = ended(&mut ending) => break Ok(()),
        }
    };
    drop(listener);
    let cut = drain(&app, &phase_sender, open, &mut ending).await?;
    if let Err(error) = app.audit.stop() {
        console::note(error.to_string());
    }
    match cut {
        0 => outcome,
        cut => outcome.and_then(|()| {
            let message = format!("{} cut off after --drain", count(cut, "connection"));
            Err(Failure::outcome(message, None))
        }),
    }
}

/// Lets running requests finish, then aborts them. Returns the number of aborted connections.
async fn drain(
    app: &App,
    phase: &watch::Sender<Phase>,
    open: GracefulShutdown,
    ending: &mut Ending,
) -> Result<usize, Failure> {
    let connections = || app.connections.load(Relaxed);
    let _ = phase.send(Phase::Draining);
    console::note(format!("draining: {}", count(connections(), "connection")));
    let mut all = pin!(open.shutdown());
    tokio::select! {
        done = timeout(app.options.limits.drain_timeout, &mut all) => if done.is_ok() {
            return Ok(0);
        },
        () = ended(ending) => return Err(PanelError::Interrupted.into()),
    }
    let cut = connections();
    let _ = phase.send(Phase::Cut);
    let _ = timeout(FAREWELL, all).await;
    Ok(cut)
}

/// Answers requests until the client or the server closes the connection, or the client is too slow with its headers or with reading.
async fn answer(app: &App, router: Router, stream: TcpStream, peer: IpAddr, watcher: Watcher) {
    let limits = &app.options.limits;
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.client_timeout));
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.client_timeout)
        .max_buf_size(MOST_HEAD_BYTES)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    // After an error the client is gone, or has received it.
    let _ = watcher.watch(connection).await;
}

fn read_keys(options: &ServeOptions) -> Result<Keys, Failure> {
    let keys = options.listen.keys.as_deref().map(keys::read).transpose()?;
    Ok(keys.map(Arc::new))
}

/// Reads keys again; if they cannot be read, the old ones stay.
fn reload(options: &ServeOptions, keys: &watch::Sender<Keys>) {
    console::note(match read_keys(options) {
        Ok(read) => {
            keys.send_replace(read);
            "the keys were read again".to_owned()
        }
        Err(failure) => format!("the keys stay as they were: {failure}"),
    });
}

/// The signals that end a server: an interrupt, or that it is to terminate.
type Ending = [Signal; 2];

/// The next of them.
async fn ended([interrupt, terminate]: &mut Ending) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_reader_that_takes_nothing_ends_the_stream_and_a_slow_one_does_not() {
        let patience = Duration::from_millis(100);
        let (writer, mut reader) = tokio::io::duplex(4);
        let mut stream = TimeoutStream::new(writer);
        stream.set_write_timeout(Some(patience));
        let mut stream = Box::pin(stream);
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
        let (written, read) = tokio::join!(stream.write_all(b"abcdefgh"), slow);
        written.unwrap();
        assert_eq!(read, b"abcdefgh");
        stream.write_all(b"1234").await.unwrap();
        let error = stream.write_all(b"5").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
