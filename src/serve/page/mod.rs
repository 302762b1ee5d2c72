//! The web page for clinicians: a form for a note or a question, the calls of its case as they finish, and the outcome.
//!
//! Pages are rendered on the server and work without scripts; the only script shows calls as they finish. No URL contains text of
//! a note.

mod view;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use self::view::{Shell, render};
use super::app::App;
use super::audit::Who;
use super::body::{FEEDBACK, LOGIN, Sent, WHOLE, blocking};
use super::case::store::Named;
use super::case::{Ask, question};
use super::check::{exported, keep, language, owner};
use super::error::{ApiError, Code};
use super::guard::{self, Asking, Caller, Peer};
use super::request::address::Address;
use super::route::{Access, Route};
use super::session::{self, SESSION, VISITOR};
use super::system_chat::run_seed;
use crate::data::ItemKind;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";
/// The most characters of a comment.
const MOST_COMMENT: usize = 4000;

pub fn routes() -> Vec<Route> {
    let style = get(|| async { asset("text/css; charset=utf-8", STYLE) });
    let script = get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) });
    vec![
        Route::page("/", Access::PublicPage, get(index)),
        Route::page("/login", Access::PublicPage, get(login_form).post(login)),
        Route::page("/logout", Access::PublicPage, post(logout)),
        Route::page("/cases", Access::Page, post(open_case)),
        Route::page("/cases/{id}", Access::Page, get(show_case)),
        Route::page("/cases/{id}/export", Access::Page, get(export_case)),
        Route::page("/cases/{id}/feedback", Access::Page, post(take_feedback)),
        Route::page("/page.css", Access::Public, style),
        Route::page("/page.js", Access::Public, script),
    ]
}

pub fn to_login() -> Response {
    see_other("/login")
}

fn see_other(place: &str) -> Response {
    match HeaderValue::from_str(place) {
        Ok(place) => (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// A page with its security headers.
fn html(status: StatusCode, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        // With `no-referrer` browsers would not say which origin a form is of.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("x-frame-options"), HeaderValue::from_static("DENY")),
    ];
    (status, headers, text).into_response()
}

/// A rendered page, or its error as a page.
fn page(app: &App, shell: &Shell, rendered: Result<Response, ApiError>) -> Response {
    let error = match rendered {
        Ok(mut response) => {
            if let Some(cookie) = shell.new_cookie.clone() {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
            return response;
        }
        Err(error) => error,
    };
    app.metrics.rejected(error.code);
    let values = json!({"message": error.message});
    match render(app, shell, "error.html", values) {
        Ok(text) => html(error.status(), text),
        Err(error) => error.into_response(),
    }
}

/// The user of the page.
struct Visitor {
    caller: Option<Caller>,
    who: Who,
    peer: Option<IpAddr>,
    shell: Shell,
}

impl FromRequestParts<Arc<App>> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Visitor, Infallible> {
        let Asking { caller, who } = Asking::from_request_parts(parts, app).await?;
        let peer = parts.extensions.get::<Peer>().and_then(|peer| peer.0);
        Ok(Visitor { shell: Shell::new(app, parts, caller.as_ref()), caller, who, peer })
    }
}

impl Visitor {
    /// A case that the visitor asks for.
    fn named(&self, id: String) -> Named {
        Named { id, owner: owner(self.caller.as_ref()) }
    }
}

/// A form, or why it could not be read.
type Posted<const MOST: usize> = Result<Sent<MOST>, ApiError>;

async fn index(State(app): State<Arc<App>>, visitor: Visitor) -> Response {
    let Visitor { caller, shell, .. } = visitor;
    if app.keys.borrow().is_some() && caller.is_none() {
        return to_login();
    }
    let cases = app.cases.store.list(owner(caller.as_ref())).await;
    let rendered = view::index(&app, &shell, &cases).map(|text| html(StatusCode::OK, text));
    page(&app, &shell, rendered)
}

async fn login_form(State(app): State<Arc<App>>, Visitor { shell, .. }: Visitor) -> Response {
    let rendered = render(&app, &shell, "login.html", json!({"is_wrong": false}));
    page(&app, &shell, rendered.map(|text| html(StatusCode::OK, text)))
}

#[derive(Deserialize)]
struct LoginForm {
    token: String,
    key: String,
}

async fn login(State(app): State<Arc<App>>, visitor: Visitor, posted: Posted<LOGIN>) -> Response {
    let entered = enter(&app, &visitor, posted).await;
    page(&app, &visitor.shell, entered)
}

async fn enter(
    app: &Arc<App>,
    visitor: &Visitor,
    posted: Posted<LOGIN>,
) -> Result<Response, ApiError> {
    let Visitor { who, shell, .. } = visitor;
    let form: LoginForm = posted?.form().await?;
    shell.check(&form.token)?;
    if app.keys.borrow().is_none() {
        return Ok(see_other("/"));
    }
    let Some(caller) = guard::log_in(app, form.key.trim()) else {
        if app.failures.count(visitor.peer) {
            let message = "too many wrong keys from this address; wait a minute";
            return Err(ApiError::new(Code::TooManyFailures, message).retry_after(60));
        }
        // Only a failure within the limit is logged: whoever tries keys must not fill the disk.
        app.audit.tell(who.event("login_failed")).await?;
        let text = render(app, shell, "login.html", json!({"is_wrong": true}))?;
        return Ok(html(StatusCode::UNAUTHORIZED, text));
    };
    let id = open_session(app, &caller, &who.clone().with_actor(&caller)).await?;
    let response = with_cookie(VISITOR.set(None, shell.is_secure), see_other("/"));
    Ok(with_cookie(SESSION.set(Some(&id), shell.is_secure), response))
}

async fn open_session(app: &Arc<App>, caller: &Caller, who: &Who) -> Result<String, ApiError> {
    app.audit.tell(who.event("login")).await?;
    let id = session::random_id()?;
    let (own, identity) = (id.clone(), caller.identity());
    let open = move |sessions: &mut session::Sessions| sessions.open(own, identity, Instant::now());
    let opened = app.cases.store.sessions(open).await;
    opened.ok_or_else(|| ApiError::new(Code::Internal, "no session could be opened"))?;
    Ok(id)
}

fn with_cookie(cookie: Option<HeaderValue>, mut response: Response) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[derive(Deserialize)]
struct LogoutForm {
    token: String,
}

async fn logout(
    State(app): State<Arc<App>>,
    Visitor { shell, caller, .. }: Visitor,
    posted: Posted<LOGIN>,
) -> Response {
    let session = caller.as_ref().and_then(Caller::session).map(str::to_owned);
    let check = async { shell.check(&posted?.form::<LogoutForm>().await?.token) };
    if let Err(error) = check.await {
        return page(&app, &shell, Err(error));
    }
    if let Some(id) = session {
        let close = move |sessions: &mut session::Sessions| sessions.close(&id);
        app.cases.store.sessions(close).await;
    }
    with_cookie(SESSION.set(None, shell.is_secure), to_login())
}

#[derive(Deserialize)]
struct CaseForm {
    token: String,
    system: String,
    text: String,
    #[serde(default)]
    language: String,
    #[serde(default)]
    seed: String,
}

async fn open_case(
    State(app): State<Arc<App>>,
    Visitor { caller, who, shell, .. }: Visitor,
    posted: Posted<WHOLE>,
) -> Response {
    let (reading, shell) = (app.clone(), Arc::new(shell));
    let opened = async {
        let checking = shell.clone();
        let read = move |form: CaseForm| {
            checking.check(&form.token)?;
            read_case(&reading, form)
        };
        let ask = posted?.form_as(read).await?;
        keep(&app, Ask { who, ..ask }, caller.as_ref()).await
    };
    let opened = opened.await;
    page(&app, &shell, opened.map(|id| see_other(&format!("/cases/{id}"))))
}

fn read_case(app: &App, form: CaseForm) -> Result<Ask, ApiError> {
    let served = app.served()?;
    let unknown = || ApiError::new(Code::ModelNotFound, "this system is not served any more");
    let system = served.system(&form.system).ok_or_else(unknown)?.clone();
    system.refuse_length(&form.text, "text")?;
    // Browsers send line ends as CRLF.
    let text = form.text.replace("\r\n", "\n");
    let language = Some(form.language.as_str()).filter(|name| !name.is_empty());
    let item = match system.takes() {
        ItemKind::Notes => {
            question::note(&text, language.map(self::language).transpose()?, "text")?
        }
        ItemKind::Questions => question::item(ItemKind::Questions, &text)?,
    };
    let seed = match form.seed.trim() {
        "" => None,
        seed => Some(seed.parse().map_err(|_| {
            ApiError::new(Code::InvalidValue, "the seed is not a whole number from 0 on")
        })?),
    };
    Ask::new(system, item, run_seed(app, seed)?, "text")
}

async fn show_case(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    visitor: Visitor,
) -> Response {
    let named = visitor.named(id);
    let shell = Arc::new(visitor.shell);
    let rendered = async {
        let case = app.cases.store.look(named).await?;
        let (app, shell) = (app.clone(), shell.clone());
        blocking(move || view::case(&app, &shell, &case)).await
    };
    let rendered = rendered.await;
    page(&app, &shell, rendered.map(|text| html(StatusCode::OK, text)))
}

async fn export_case(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    visitor: Visitor,
) -> Response {
    let pretty = |value: &Value| format!("{value:#}\n");
    let named = visitor.named(id);
    let text = exported(&app, named, &visitor.who, pretty).await;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=\"case.json\""),
        ),
    ];
    page(&app, &visitor.shell, text.map(|text| (headers, text).into_response()))
}

#[derive(Deserialize)]
struct FeedbackForm {
    token: String,
    #[serde(default)]
    helpful: String,
    #[serde(default)]
    comment: String,
}

async fn take_feedback(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    visitor: Visitor,
    posted: Posted<FEEDBACK>,
) -> Response {
    let taken = feedback(&app, &id, posted, &visitor).await;
    page(&app, &visitor.shell, taken.map(|()| see_other(&format!("/cases/{id}#feedback"))))
}

async fn feedback(
    app: &Arc<App>,
    id: &str,
    posted: Posted<FEEDBACK>,
    visitor: &Visitor,
) -> Result<(), ApiError> {
    let form: FeedbackForm = posted?.form().await?;
    visitor.shell.check(&form.token)?;
    let case = visitor.named(id.to_owned());
    app.cases.store.look(case.clone()).await?;
    let comment = form.comment.trim().replace("\r\n", "\n");
    let is_helpful = match form.helpful.as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        "" if !comment.is_empty() => None,
        _ => return Err(ApiError::invalid("helpful", "the judgement is neither yes nor no")),
    };
    if comment.chars().count() > MOST_COMMENT {
        let message = format!("the comment has more than {MOST_COMMENT} characters");
        return Err(ApiError::new(Code::InvalidValue, message));
    }
    // On a task of its own: a browser that leaves would otherwise end this between the claim and the line.
    let (app, who, id) = (app.clone(), visitor.who.clone(), id.to_owned());
    let judged = tokio::spawn(async move {
        // Before it is logged: of two that come at once, one is taken.
        app.cases.store.rate(case).await?;
        let logged = app.audit.feedback(&who, &id, is_helpful, &comment).await;
        if logged.is_err() {
            app.cases.store.unrate(id);
        }
        logged
    });
    judged.await.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?
}
