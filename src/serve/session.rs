//! Sessions of the web page: after a login with a key, a cookie authenticates the user.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::ApiError;

const COOKIE: &str = "wr_session";
/// A session ends after this time, or after [`IDLE`] without a request.
const LONGEST: Duration = Duration::from_secs(12 * 60 * 60);
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The most sessions; the one that was idle longest is closed first.
const MOST: usize = 1000;

/// The open sessions. The thread of the case store owns them.
#[derive(Default)]
pub struct Sessions {
    open: HashMap<String, Session>,
}

struct Session {
    /// The name of its key, which may have been revoked.
    key: String,
    began_at: Instant,
    used_at: Instant,
}

impl Sessions {
    /// Opens a session with this id.
    pub fn open(&mut self, id: String, key: String, now: Instant) {
        self.sweep(now);
        if self.open.len() >= MOST {
            let idle = self.open.iter().min_by_key(|(_, session)| session.used_at);
            if let Some(idle) = idle.map(|(id, _)| id.clone()) {
                self.open.remove(&idle);
            }
        }
        self.open.insert(id, Session { key, began_at: now, used_at: now });
    }

    /// The name of the key of this session.
    pub fn find(&mut self, id: &str, now: Instant) -> Option<String> {
        let session = self.open.get_mut(id).filter(|session| session.is_open(now))?;
        session.used_at = now;
        Some(session.key.clone())
    }

    pub fn close(&mut self, id: &str) {
        self.open.remove(id);
    }

    /// Removes expired sessions.
    pub fn sweep(&mut self, now: Instant) {
        self.open.retain(|_, session| session.is_open(now));
    }
}

impl Session {
    fn is_open(&self, now: Instant) -> bool {
        now - self.began_at < LONGEST && now - self.used_at < IDLE
    }
}

/// 256 random bits in 43 characters.
///
/// # Errors
/// No random numbers from the operating system.
pub fn random_id() -> Result<String, ApiError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(ApiError::no_random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The session id of a request's cookie.
pub fn id(headers: &HeaderMap) -> Option<String> {
    let cookies =
        headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';'));
    let id = pairs.find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))?;
    Some(id.to_owned())
}

/// The header that sets the session's cookie; without an id it deletes the cookie.
pub fn cookie(id: Option<&str>, is_tls: bool) -> Option<HeaderValue> {
    let secure = if is_tls { "; Secure" } else { "" };
    let (id, age) = match id {
        Some(id) => (id, LONGEST.as_secs()),
        None => ("", 0),
    };
    let text = format!("{COOKIE}={id}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}");
    HeaderValue::from_str(&text).ok()
}

/// The token that the forms of this session must carry, so that no other site can submit them (CSRF). Without a session it belongs to the
/// `user` whom a reverse proxy names. It does not reveal the session id.
pub fn form_token(id: Option<&str>, user: Option<&str>, secret: &str) -> String {
    let holder = match (id, user) {
        (Some(id), _) => format!("session {id}"),
        (None, Some(user)) => format!("user {user}"),
        (None, None) => "nobody".to_owned(),
    };
    crate::digest::sha256(format!("form {secret} {holder}"))[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_idleness_age_and_logout() {
        let start = Instant::now();
        let after = |minutes: u64| start + Duration::from_secs(60 * minutes);
        let mut sessions = Sessions::default();
        sessions.open("a".into(), "ward".into(), start);
        assert_eq!(sessions.find("a", after(29)).as_deref(), Some("ward"));
        assert_eq!(sessions.find("a", after(58)).as_deref(), Some("ward"));
        assert_eq!(sessions.find("a", after(89)), None);
        sessions.open("b".into(), "ward".into(), start);
        for use_at in (25..720).step_by(25) {
            assert!(sessions.find("b", after(use_at)).is_some(), "{use_at}");
        }
        assert_eq!(sessions.find("b", after(720)), None);
        sessions.open("c".into(), "ward".into(), start);
        sessions.close("c");
        assert_eq!(sessions.find("c", start), None);
        for number in 0..MOST + 1 {
            sessions.open(
                format!("{number}"),
                "ward".into(),
                start + Duration::from_millis(number as u64),
            );
        }
        let late = start + Duration::from_secs(2);
        assert!(sessions.find("0", late).is_none() && sessions.find("1000", late).is_some());
    }

    #[test]
    fn a_cookie_is_found_among_others_and_is_strict() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::COOKIE,
            HeaderValue::from_static("a=b; wr_session=xyz; wr_sessions=no"),
        );
        assert_eq!(id(&headers).as_deref(), Some("xyz"));
        assert_eq!(id(&HeaderMap::new()), None);
        let set = cookie(Some("xyz"), true).unwrap();
        assert_eq!(
            set.to_str().unwrap(),
            "wr_session=xyz; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200; Secure"
        );
        assert!(cookie(None, false).unwrap().to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(random_id().unwrap().len(), 43);
    }

    #[test]
    fn every_session_and_every_user_of_a_proxy_has_its_own_form_token() {
        let holders = [
            (Some("xyz"), None),
            (Some("xyw"), Some("dr.ho")),
            (Some("user dr.ho"), None),
            (None, Some("dr.ho")),
            (None, Some("dr.no")),
            (None, None),
        ];
        let tokens = holders.map(|(id, user)| form_token(id, user, "s"));
        assert_eq!(tokens.iter().collect::<std::collections::HashSet<_>>().len(), tokens.len());
        assert_eq!(tokens[0], form_token(Some("xyz"), Some("ward"), "s"));
    }
}
