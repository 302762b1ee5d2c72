//! The life cycle of a server: bind, load, serve, drain.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::app::{App, KeyRing, Phase};
use super::connection;
use super::error::{ApiError, Code};
use super::guard::{self, Peer};
use super::keys;
use super::listener::{self, Accepted, Bound, Listener};
use super::models::{Loaded, Served};
use super::options::{ServeOptions, refuse_open};
use super::places::{Place, Places};
use super::router::router;
use crate::console;
use crate::diagnosis::{Blame, Failure};

/// Of the threads that read requests and write answers: they get a tenth of an engine's share of a core that both want.
const NICENESS: i32 = 10;
/// The number of threads for connections; engines have their own.
const WORKERS: usize = 2;
/// The number of threads for templates, tokenizers and grammars.
const BLOCKING: usize = 8;
/// The pause after a failed accept, which means that a resource is exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time to send final errors to aborted connections.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often running cases are checked while draining.
const CASES_WATCH: Duration = Duration::from_millis(50);
/// How often engines are checked.
const WATCH: Duration = Duration::from_millis(500);

/// The reason why the server ends.
enum End {
    Signal,
    EngineDied(String),
    LoadFailed(Failure),
}

/// Serves the models that `load` returns until a signal ends the server. The socket is bound first; then the process enters its sandbox;
/// and only then is anybody's connection taken, and are models loaded.
///
/// # Errors
/// An address that is in use; keys or certificates that cannot be read; models that cannot be loaded; an engine that died; requests
/// that were aborted at the end.
pub fn serve<S: Send + 'static>(
    options: ServeOptions,
    enter: impl FnOnce() -> Result<S, Failure>,
    load: impl FnOnce(S) -> Result<Loaded, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let bound = Bound::new(&options.listen)?;
    let entered = enter()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .thread_name("serve")
        .on_thread_start(give_way)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(run(options, bound, move || load(entered)));
    // Work in blocking threads is abandoned.
    runtime.shutdown_background();
    ended
}

/// Lets the engines' threads go first where cores are few: texts of one client, however long, slow no other's completions by much.
fn give_way() {
    // Where the whole process gives way more, it stays so.
    if cfg!(target_os = "linux") {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

async fn run(
    options: ServeOptions,
    bound: Bound,
    load: impl FnOnce() -> Result<Loaded, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (key_sender, keys) = watch::channel(read_keys(&options, None)?);
    let (tls_sender, acceptor) = watch::channel(listener::tls(&options.listen)?);
    let (phase_sender, phase) = watch::channel(Phase::Serving);
    let mut hangup = signal(SignalKind::hangup())?;
    let mut ending = Ending::new()?;
    let connections_limit = raise_open_files(options.limits.connections);
    let listener = Listener::of(bound)?;
    if let Some(host) = listener.host()? {
        refuse_open(host, options.listen.is_guarded())?;
    }
    console::say(format!("listening on {}", listener.address(options.listen.has_tls())?))?;
    let app = Arc::new(App::new(options, phase.clone(), keys)?);
    let mut loaded = load_beside(&app, load)?;
    let router = router(&app);
    let mut connections = JoinSet::new();
    let places = Places::default();
    let mut watch = interval(WATCH);
    let mut is_loaded = false;
    let end = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => match places.take(accepted.peer(), connections_limit) {
                    Some(place) => {
                        let (app, router) = (app.clone(), router.clone());
                        let acceptor = acceptor.borrow().clone();
                        connections.spawn(answer(app, router, accepted, acceptor, place));
                    }
                    None => {
                        app.metrics.rejected(Code::TooManyConnections);
                        tokio::spawn(turn_away(accepted));
                    }
                },
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = watch.tick() => {
                if let Some(error) = app.loaded().and_then(Served::failure) {
                    break End::EngineDied(error.to_string());
                }
            }
            result = &mut loaded, if !is_loaded => match result {
                Ok(Ok(())) => {
                    is_loaded = true;
                    console::note("ready");
                }
                Ok(Err(failure)) => break End::LoadFailed(failure),
                Err(_) => {
                    let message = "loading the models failed: see the message above";
                    break End::LoadFailed(std::io::Error::other(message).into());
                }
            },
            _ = hangup.recv() => {
                reload(&app.options, &key_sender, &tls_sender);
                app.audit.keys(app.keys.borrow().as_deref());
            }
            () = ending.next() => break End::Signal,
        }
    };
    drop(listener);
    let outcome = match end {
        End::LoadFailed(failure) => return Err(failure),
        End::Signal => Ok(()),
        End::EngineDied(reason) => {
            Err(Failure::machine(reason, "see the log; the service manager may restart it"))
        }
    };
    let cut = drain(&app, &phase_sender, connections, &mut ending).await?;
    if let Err(error) = app.audit.stop() {
        console::note(error.to_string());
    }
    match (outcome, cut) {
        (Ok(()), 0) => Ok(()),
        (Ok(()), cut) => {
            let message = format!("{cut} connections or cases were cut off after --drain");
            Err(Failure::outcome(message, None))
        }
        (Err(failure), _) => Err(failure),
    }
}

/// Lets running requests finish, then aborts them. Returns the number of aborted connections and cases.
async fn drain(
    app: &App,
    phase: &watch::Sender<Phase>,
    mut connections: JoinSet<()>,
    ending: &mut Ending,
) -> Result<usize, Failure> {
    let _ = phase.send(Phase::Draining);
    console::note(format!("draining: {} connections", connections.len()));
    let all = async {
        while connections.join_next().await.is_some() {}
        // What clients have left has its end in the audit trail too.
        while app.cases.open() > 0 {
            sleep(CASES_WATCH).await;
        }
    };
    tokio::select! {
        done = timeout(app.options.limits.drain_timeout, all) => if done.is_ok() {
            return Ok(0);
        },
        () = ending.next() => return Err(InterruptedTwice.into()),
    }
    let cut = connections.len() + app.cases.open();
    let _ = phase.send(Phase::Cut);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(FAREWELL, all).await;
    connections.abort_all();
    Ok(cut)
}

#[derive(Debug, thiserror::Error)]
#[error("interrupted twice: what ran was dropped")]
struct InterruptedTwice;

impl crate::diagnosis::Diagnosis for InterruptedTwice {
    fn blame(&self) -> Blame {
        Blame::Interrupted
    }
}

/// Loads the models on a thread of their own.
fn load_beside(
    app: &Arc<App>,
    load: impl FnOnce() -> Result<Loaded, Failure> + Send + 'static,
) -> Result<oneshot::Receiver<Result<(), Failure>>, Failure> {
    let (sender, receiver) = oneshot::channel();
    let app = app.clone();
    let work = move || {
        let served = load().and_then(|models| Served::new(models, &app.metrics));
        let loaded = served.map(|served| app.begin(served));
        // The receiver is gone if a signal came first.
        let _ = sender.send(loaded);
    };
    std::thread::Builder::new().name("load".to_owned()).spawn(work)?;
    Ok(receiver)
}

/// Serves one connection to its end.
async fn answer(
    app: Arc<App>,
    router: Router,
    accepted: Accepted,
    acceptor: Option<TlsAcceptor>,
    _place: Place,
) {
    app.metrics.connections.inc();
    match accepted {
        Accepted::Unix(stream) => {
            let user = stream.peer_cred().ok().map(|peer| peer.uid());
            speak(&app, router, stream, Peer(None, user), None).await
        }
        Accepted::Tcp { stream, peer } => {
            speak(&app, router, stream, Peer(Some(peer), None), acceptor).await
        }
    }
    app.metrics.connections.dec();
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    app: &App,
    router: Router,
    stream: S,
    peer: Peer,
    acceptor: Option<TlsAcceptor>,
) {
    let (limits, phase) = (app.options.limits, app.phase.clone());
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request
    });
    match acceptor {
        None => connection::serve(stream, service, limits, phase).await,
        Some(acceptor) => {
            // The client sees a failed handshake.
            if let Ok(Ok(stream)) = timeout(limits.header_timeout, acceptor.accept(stream)).await {
                connection::serve(stream, service, limits, phase).await;
            }
        }
    }
}

/// Responds that there are too many connections, without reading the request.
async fn turn_away(accepted: Accepted) {
    let error = ApiError::new(Code::TooManyConnections, "too many connections");
    let (body, id) = (error.json().to_string(), guard::new_request_id());
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncache-control: no-store\r\nconnection: close\r\nretry-after: 5\r\n";
    let text = format!("{head}x-request-id: {id}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let tell = async {
        // The client may be gone.
        let _ = match accepted {
            Accepted::Tcp { mut stream, .. } => stream.write_all(text.as_bytes()).await,
            Accepted::Unix(mut stream) => stream.write_all(text.as_bytes()).await,
        };
    };
    let _ = timeout(FAREWELL, tell).await;
}

/// Raises the soft limit on open files to the hard one. Returns how many connections fit, with some files left for models and logs.
fn raise_open_files(wanted: usize) -> usize {
    const KEPT: u64 = 128;
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => wanted.min(files.saturating_sub(KEPT) as usize).max(1),
        Err(_) => wanted,
    }
}

/// `before` are the keys so far.
fn read_keys(
    options: &ServeOptions,
    before: Option<&KeyRing>,
) -> Result<Option<Arc<KeyRing>>, Failure> {
    let keys = options.listen.keys.as_deref().map(keys::read).transpose()?;
    Ok(keys.map(|keys| Arc::new(KeyRing::new(keys, before))))
}

/// Reads keys and certificates again; if they cannot be read, the old ones stay.
fn reload(
    options: &ServeOptions,
    keys: &watch::Sender<Option<Arc<KeyRing>>>,
    tls: &watch::Sender<Option<TlsAcceptor>>,
) {
    let before = keys.borrow().clone();
    let read = read_keys(options, before.as_deref());
    let keys = read.map(|read| drop(keys.send_replace(read)));
    let tls = listener::tls(&options.listen).map(|read| drop(tls.send_replace(read)));
    for (what, read) in [("keys", keys), ("certificates", tls)] {
        console::note(match read {
            Ok(()) => format!("the {what} were read again"),
            Err(failure) => format!("the {what} stay as they were: {failure}"),
        });
    }
}

/// The signals that end a server.
struct Ending {
    interrupt: Signal,
    terminate: Signal,
}

impl Ending {
    fn new() -> std::io::Result<Ending> {
        Ok(Ending {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next of them.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
