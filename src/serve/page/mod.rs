//! The page for clinicians: a note or a question goes in, the debate comes as it is led, and the outcome with who said what.
//!
//! Everything is rendered here and works without a script; the one script there is shows calls as they come. Nothing of a note is
//! in an address.

mod view;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use self::view::{Shell, render};
use super::app::{App, Caller};
use super::audit::{Feedback, Who};
use super::body;
use super::case::desk::Named;
use super::case::{Ask, question};
use super::check::{export, keep, language, owner};
use super::error::{ApiError, Code};
use super::guard::{self, Needed};
use super::request::address::Address;
use super::session;
use super::system_chat::run_seed;
use crate::data::ItemKind;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";
/// Characters of a comment.
const MOST_COMMENT: usize = 4000;

/// The paths of the page.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(index))
        .route("/login", get(login_form).post(login))
        .route("/logout", post(logout))
        .route("/cases", post(open_case))
        .route("/cases/{id}", get(show_case))
        .route("/cases/{id}/export", get(export_case))
        .route("/cases/{id}/feedback", post(take_feedback))
        .route("/page.css", get(|| async { asset("text/css; charset=utf-8", STYLE) }))
        .route("/page.js", get(|| async { asset("text/javascript; charset=utf-8", SCRIPT) }))
}

/// Whether a path is one that people see, who are sent to log in where programs are told that a key is missing.
pub fn is_of(path: &str) -> bool {
    path == "/cases" || path.starts_with("/cases/")
}

/// Whether what is sent to a path is a form that carries a token.
pub fn has_token(path: &str) -> bool {
    is_of(path) || path == "/login" || path == "/logout"
}

/// Who is logged in.
pub async fn caller(app: &App, headers: &HeaderMap) -> Option<Caller> {
    let keys = app.keys.borrow().clone()?;
    let id = session::id(headers)?;
    let find = move |sessions: &mut session::Sessions| sessions.find(&id, Instant::now());
    let name = app.cases.desk().sessions(find).await.flatten()?;
    keys.named(&name)
}

/// What to do where nobody is logged in.
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

/// A page with the headers that keep it to itself.
fn html(status: StatusCode, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("x-frame-options"), HeaderValue::from_static("DENY")),
    ];
    (status, headers, text).into_response()
}

/// A page, or what went wrong as a page.
fn page(app: &App, shell: &Shell, rendered: Result<Response, ApiError>) -> Response {
    let error = match rendered {
        Ok(response) => return response,
        Err(error) => error,
    };
    app.metrics.rejected(error.code);
    let values = json!({"message": error.message});
    match render(app, shell, "error.html", values) {
        Ok(text) => html(error.status(), text),
        Err(error) => error.into_response(),
    }
}

/// Whether somebody must log in first.
fn is_closed(app: &App, caller: Option<&Caller>) -> bool {
    app.keys.borrow().is_some() && caller.is_none()
}

async fn index(State(app): State<Arc<App>>, request: Request) -> Response {
    let caller = guard::caller(&request);
    if is_closed(&app, caller.as_ref()) {
        return to_login();
    }
    let shell = Shell::new(&app, request.headers(), caller.as_ref());
    let cases = app.cases.desk().list(owner(caller.as_ref())).await;
    let rendered = view::index(&app, &shell, &cases).map(|text| html(StatusCode::OK, text));
    page(&app, &shell, rendered)
}

async fn login_form(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let shell = Shell::new(&app, &headers, None);
    let rendered = render(&app, &shell, "login.html", json!({"is_wrong": false}));
    page(&app, &shell, rendered.map(|text| html(StatusCode::OK, text)))
}

#[derive(Deserialize)]
struct LoginForm {
    token: String,
    key: String,
}

async fn login(State(app): State<Arc<App>>, request: Request) -> Response {
    let (peer, who) = (guard::peer(&request), Who::of(&request));
    let headers = request.headers().clone();
    let shell = Shell::new(&app, &headers, None);
    let form: LoginForm = match read(&app, request).await {
        Ok(form) => form,
        Err(error) => return page(&app, &shell, Err(error)),
    };
    if let Err(error) = shell.check(&form.token) {
        return page(&app, &shell, Err(error));
    }
    let Some(keys) = app.keys.borrow().clone() else {
        return see_other("/");
    };
    let found =
        keys.find(form.key.trim()).filter(|caller| guard::may(caller.key.role, Needed::Cases));
    let Some(caller) = found else {
        if app.failures.count(peer) {
            let message = "too many wrong keys from this address; wait a minute";
            let error = ApiError::new(Code::TooManyFailures, message).retry_after(60);
            return page(&app, &shell, Err(error));
        }
        // Only a failure within the limit is logged: whoever tries keys must not fill the disk.
        let logged = app.audit.tell(who.event("login_failed")).await;
        let rendered = render(&app, &shell, "login.html", json!({"is_wrong": true}));
        let rendered = logged.and(rendered);
        return page(&app, &shell, rendered.map(|text| html(StatusCode::UNAUTHORIZED, text)));
    };
    let name = caller.key.name.clone();
    let opened = open_session(&app, name, &who.with_actor(&caller)).await;
    let response = opened.map(|id| with_cookie(&app, Some(&id), see_other("/")));
    page(&app, &shell, response)
}

async fn open_session(app: &Arc<App>, name: String, who: &Who) -> Result<String, ApiError> {
    app.audit.tell(who.event("login")).await?;
    let id = session::random_id()?;
    let own = id.clone();
    let open = move |sessions: &mut session::Sessions| sessions.open(own, name, Instant::now());
    let opened = app.cases.desk().sessions(open).await;
    opened.ok_or_else(|| ApiError::new(Code::Internal, "no session could be opened"))?;
    Ok(id)
}

fn with_cookie(app: &App, id: Option<&str>, mut response: Response) -> Response {
    if let Some(cookie) = session::cookie(id, app.options.tls.is_some()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

#[derive(Deserialize)]
struct LogoutForm {
    token: String,
}

async fn logout(State(app): State<Arc<App>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let shell = Shell::new(&app, &headers, guard::caller(&request).as_ref());
    let form: Result<LogoutForm, ApiError> = read(&app, request).await;
    if let Err(error) = form.and_then(|form| shell.check(&form.token)) {
        return page(&app, &shell, Err(error));
    }
    if let Some(id) = session::id(&headers) {
        let close = move |sessions: &mut session::Sessions| sessions.close(&id);
        app.cases.desk().sessions(close).await;
    }
    with_cookie(&app, None, to_login())
}

/// The fields of a form.
async fn read<T: DeserializeOwned>(app: &App, request: Request) -> Result<T, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body, &app.options.limits).await?;
    let request = Request::from_parts(parts, Body::from(bytes));
    let Form(form) = Form::<T>::from_request(request, &()).await.map_err(|_| {
        ApiError::new(Code::InvalidValue, "the form lacks a field; load the page again")
    })?;
    Ok(form)
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

async fn open_case(State(app): State<Arc<App>>, request: Request) -> Response {
    let (caller, who) = (guard::caller(&request), Who::of(&request));
    let headers = request.headers().clone();
    let shell = Shell::new(&app, &headers, caller.as_ref());
    let opened = match read::<CaseForm>(&app, request).await {
        Ok(form) => read_case(&app, &shell, form)
            .and_then(|ask| keep(&app, Ask { who, ..ask }, caller.as_ref())),
        Err(error) => Err(error),
    };
    page(&app, &shell, opened.map(|id| see_other(&format!("/cases/{id}"))))
}

fn read_case(app: &App, shell: &Shell, form: CaseForm) -> Result<Ask, ApiError> {
    shell.check(&form.token)?;
    let served = app.served()?;
    let unknown = || ApiError::new(Code::ModelNotFound, "this system is not served any more");
    let system = served.system(&form.system).ok_or_else(unknown)?.clone();
    // Browsers send line ends as two characters.
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
    Ok(Ask { system, item, seed: run_seed(app, seed)?, run: 1, who: Who::default() })
}

async fn show_case(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    request: Request,
) -> Response {
    let caller = guard::caller(&request);
    let shell = Shell::new(&app, request.headers(), caller.as_ref());
    let owner = owner(caller.as_ref());
    let found = app.cases.desk().look(Named { id, owner }).await;
    let rendered = found.and_then(|case| view::case(&app, &shell, &case));
    page(&app, &shell, rendered.map(|text| html(StatusCode::OK, text)))
}

async fn export_case(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    request: Request,
) -> Response {
    let (caller, who) = (guard::caller(&request), Who::of(&request));
    let shell = Shell::new(&app, request.headers(), caller.as_ref());
    let exported = exported(&app, id, caller.as_ref(), &who).await;
    page(&app, &shell, exported)
}

async fn exported(
    app: &Arc<App>,
    id: String,
    caller: Option<&Caller>,
    who: &Who,
) -> Result<Response, ApiError> {
    let case = app.cases.desk().look(Named { id, owner: owner(caller) }).await?;
    app.audit.tell(who.event("export").with("case", case.head.id.as_str())).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=\"case.json\""),
        ),
    ];
    Ok((headers, format!("{:#}\n", export(&case))).into_response())
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
    request: Request,
) -> Response {
    let (caller, who) = (guard::caller(&request), Who::of(&request));
    let headers = request.headers().clone();
    let shell = Shell::new(&app, &headers, caller.as_ref());
    let judged = Judged { id: id.clone(), who, owner: owner(caller.as_ref()) };
    let taken = match read::<FeedbackForm>(&app, request).await {
        Ok(form) => feedback(&app, &shell, form, judged).await,
        Err(error) => Err(error),
    };
    page(&app, &shell, taken.map(|()| see_other(&format!("/cases/{id}#feedback"))))
}

/// A case that somebody judges.
struct Judged {
    id: String,
    owner: Option<String>,
    who: Who,
}

async fn feedback(
    app: &Arc<App>,
    shell: &Shell,
    form: FeedbackForm,
    judged: Judged,
) -> Result<(), ApiError> {
    shell.check(&form.token)?;
    let Judged { id, owner, who } = judged;
    app.cases.desk().look(Named { id: id.clone(), owner }).await?;
    let is_helpful = match form.helpful.as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    };
    let comment = form.comment.trim().replace("\r\n", "\n");
    if comment.chars().count() > MOST_COMMENT {
        let message = format!("the comment has more than {MOST_COMMENT} characters");
        return Err(ApiError::new(Code::InvalidValue, message));
    }
    let feedback = Feedback { case: &id, is_helpful, comment: &comment };
    app.audit.feedback(&who, &feedback).await?;
    app.cases.desk().tell(super::case::desk::Message::Rated { id });
    Ok(())
}
