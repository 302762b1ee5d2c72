//! Sessions of the web page: after a login with a key, a cookie authenticates the user.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::ApiError;
use super::guard::Identity;

pub const SESSION: Cookie = Cookie { name: "wr_session", age: LONGEST };
/// The cookie that the forms of somebody who is not logged in belong to.
pub const VISITOR: Cookie = Cookie { name: "wr_form", age: LONGEST };
/// A session ends after this time, or after [`IDLE`] without a request.
const LONGEST: Duration = Duration::from_secs(12 * 60 * 60);
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The most sessions of one identity.
const MOST_OF_ONE: usize = 16;
/// The most sessions of all.
const MOST: usize = 1000;

/// The open sessions. The thread of the case store owns them.
#[derive(Default)]
pub struct Sessions {
    open: HashMap<String, Session>,
}

struct Session {
    /// Its key's, which may have been revoked.
    identity: Identity,
    began_at: Instant,
    used_at: Instant,
}

impl Sessions {
    /// Opens a session with this id. Where there are too many, the identity's own that was idle longest is closed; only one who has none
    /// takes the place of another's.
    pub fn open(&mut self, id: String, identity: Identity, now: Instant) {
        self.sweep(now);
        let own = self.open.values().filter(|session| session.identity == identity).count();
        if own >= MOST_OF_ONE || self.open.len() >= MOST {
            let open = self.open.iter();
            let idle = open
                .filter(|(_, session)| own == 0 || session.identity == identity)
                .min_by_key(|(_, session)| session.used_at);
            if let Some(idle) = idle.map(|(id, _)| id.clone()) {
                self.open.remove(&idle);
            }
        }
        self.open.insert(id, Session { identity, began_at: now, used_at: now });
    }

    /// The identity of this session's key.
    pub fn find(&mut self, id: &str, now: Instant) -> Option<Identity> {
        let session = self.open.get_mut(id).filter(|session| session.is_open(now))?;
        session.used_at = now;
        Some(session.identity)
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
pub fn random_id() -> Result<String, ApiError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(ApiError::no_random)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A cookie of the page. Over TLS its name begins with `__Host-`, so that no other server of the domain can set it.
#[derive(Clone, Copy, Debug)]
pub struct Cookie {
    name: &'static str,
    age: Duration,
}

impl Cookie {
    fn full_name(self, is_secure: bool) -> String {
        let prefix = if is_secure { "__Host-" } else { "" };
        format!("{prefix}{}", self.name)
    }

    /// Its value in a request; `None` if there is none, or several, of which one may have been planted.
    pub fn of(self, headers: &HeaderMap, is_secure: bool) -> Option<String> {
        let name = self.full_name(is_secure);
        let cookies =
            headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';'));
        let mut values =
            pairs.filter_map(|pair| pair.trim().strip_prefix(&*name)?.strip_prefix('='));
        let value = values.next()?;
        values.next().is_none().then(|| value.to_owned())
    }

    /// The header that sets it; without a value it deletes it.
    pub fn set(self, value: Option<&str>, is_secure: bool) -> Option<HeaderValue> {
        let secure = if is_secure { "; Secure" } else { "" };
        let (value, age) = match value {
            Some(value) => (value, self.age.as_secs()),
            None => ("", 0),
        };
        let name = self.full_name(is_secure);
        let text =
            format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}");
        HeaderValue::from_str(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_by_idleness_age_and_logout() {
        let start = Instant::now();
        let after = |minutes: u64| start + Duration::from_secs(60 * minutes);
        let ward = Identity::of_test(1);
        let mut sessions = Sessions::default();
        sessions.open("a".into(), ward, start);
        assert_eq!(sessions.find("a", after(29)), Some(ward));
        assert_eq!(sessions.find("a", after(58)), Some(ward));
        assert_eq!(sessions.find("a", after(89)), None);
        sessions.open("b".into(), ward, start);
        for use_at in (25..720).step_by(25) {
            assert!(sessions.find("b", after(use_at)).is_some(), "{use_at}");
        }
        assert_eq!(sessions.find("b", after(720)), None);
        sessions.open("c".into(), ward, start);
        sessions.close("c");
        assert_eq!(sessions.find("c", start), None);
    }

    #[test]
    fn who_logs_in_again_and_again_closes_no_session_of_another() {
        let start = Instant::now();
        let after = |number: usize| start + Duration::from_millis(number as u64);
        let (ward, lab) = (Identity::of_test(1), Identity::of_test(2));
        let mut sessions = Sessions::default();
        sessions.open("lab".into(), lab, start);
        for number in 1..=MOST + 1 {
            sessions.open(format!("{number}"), ward, after(number));
        }
        let late = after(MOST + 2);
        assert_eq!(sessions.find("lab", late), Some(lab));
        assert_eq!(sessions.open.len(), 1 + MOST_OF_ONE);
        let last = MOST + 1;
        assert!(sessions.find(&format!("{}", last - MOST_OF_ONE), late).is_none());
        assert!(sessions.find(&format!("{}", last - MOST_OF_ONE + 1), late).is_some());
        // Where all places are taken, who has one gives up that, and who has none takes that which was idle longest.
        let mut sessions = Sessions::default();
        for number in 0..MOST {
            let identity = Identity::of_test((number / MOST_OF_ONE) as u8);
            sessions.open(format!("{number}"), identity, after(number));
        }
        sessions.open("own".into(), Identity::of_test((MOST / MOST_OF_ONE) as u8), late);
        assert_eq!((sessions.open.len(), sessions.find("0", late).is_some()), (MOST, true));
        sessions.open("new".into(), Identity::of_test(u8::MAX), late);
        assert_eq!((sessions.open.len(), sessions.open.contains_key("1")), (MOST, false));
    }

    #[test]
    fn a_cookie_is_found_among_others_and_is_strict() {
        let with = |cookies: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(cookies));
            headers
        };
        let plain = with("a=b; wr_session=xyz; wr_sessions=no");
        assert_eq!(SESSION.of(&plain, false).as_deref(), Some("xyz"));
        assert_eq!(SESSION.of(&HeaderMap::new(), false), None);
        // Whoever can plant a cookie can plant neither a second one nor one that TLS needs.
        assert_eq!(SESSION.of(&plain, true), None);
        assert_eq!(SESSION.of(&with("wr_session=xyz; wr_session=planted"), false), None);
        let set = SESSION.set(Some("xyz"), true).unwrap();
        assert_eq!(
            set.to_str().unwrap(),
            "__Host-wr_session=xyz; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200; Secure"
        );
        assert!(VISITOR.set(None, false).unwrap().to_str().unwrap().contains("Max-Age=0"));
        assert_eq!(random_id().unwrap().len(), 43);
    }
}
