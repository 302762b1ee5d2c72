//! Who asks. Only the guard makes a caller; sessions, forms, cases, salts, limits and the trail tell callers apart by identity, not by name.

use sha2::{Digest, Sha256};

use crate::digest;
use crate::serve::admission::KeyLoad;
use crate::serve::app::Holder;
use crate::serve::keys::Role;

const MOST_NAME_CHARS: usize = 64;
/// Hexadecimal digits at the end of a user's name that was shortened.
const USER_HASH_CHARS: usize = 16;

/// What makes a caller one: a key that was made anew under an old name is another, and so is a user with the name of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    kind: Kind,
    sum: [u8; 32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// The sum is the key's.
    Key,
    /// A user whom a reverse proxy names; the sum is the whole name's.
    User,
}

impl Identity {
    #[cfg(test)]
    pub fn of_test(number: u8) -> Identity {
        Identity { kind: Kind::Key, sum: [number; 32] }
    }

    fn kind(self) -> &'static str {
        match self.kind {
            Kind::Key => "key",
            Kind::User => "user",
        }
    }

    /// A number from 0 to 65535 that spreads identities evenly.
    pub fn bucket(self) -> usize {
        usize::from(u16::from_le_bytes([self.sum[0], self.sum[1]]))
    }

    /// The kind and a part of the sum, which tell identities apart and reveal no key.
    pub fn shown(self) -> String {
        format!("{}:{}", self.kind(), digest::hex(&self.sum[..8]))
    }
}

/// A caller that the guard let in.
#[derive(Clone, Debug)]
pub struct Caller {
    identity: Identity,
    name: String,
    role: Role,
    /// The id of the page's session by which it came.
    session: Option<String>,
    load: KeyLoad,
}

impl Caller {
    /// The holder of a key that the request has.
    pub(super) fn of_key(holder: &Holder) -> Caller {
        Caller {
            identity: identity_of_key(holder),
            name: holder.key.name.clone(),
            role: holder.key.role,
            session: None,
            load: holder.load.clone(),
        }
    }

    /// The holder of the key that this session of the page was opened with.
    pub(super) fn of_session(holder: &Holder, id: String) -> Caller {
        Caller { session: Some(id), ..Caller::of_key(holder) }
    }

    /// A user whom a reverse proxy names, with the role of a clinician. A long name is shown shortened, with a part of its hash.
    pub(super) fn of_user(user: &[u8], load: impl FnOnce(Identity) -> KeyLoad) -> Caller {
        let sum: [u8; 32] = Sha256::digest([b"user ", user].concat()).into();
        let identity = Identity { kind: Kind::User, sum };
        let user = String::from_utf8_lossy(user);
        let mut name = user.clone().into_owned();
        if user.chars().count() > MOST_NAME_CHARS {
            let hash = digest::hex(&sum[..USER_HASH_CHARS / 2]);
            let kept = user.chars().take(MOST_NAME_CHARS - USER_HASH_CHARS - 1);
            name = kept.collect::<String>() + "-" + &hash;
        }
        Caller { identity, name, role: Role::Clinician, session: None, load: load(identity) }
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// For people to read: another caller may have the same.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The counter of its sequences that wait or run.
    pub fn load(&self) -> KeyLoad {
        self.load.clone()
    }

    /// A salt for the prefix cache that no other caller has; `own` is the request's own salt.
    pub fn salt(&self, own: Option<[u8; 16]>) -> [u8; 16] {
        let own = own.as_ref().map_or(&[][..], |own| own);
        let kind = self.identity.kind().as_bytes();
        let sum = Sha256::digest([kind, &self.identity.sum, own].concat());
        let mut salt = [0; 16];
        salt.copy_from_slice(&sum[..16]);
        salt
    }

    /// The token that its forms must carry, so that no other site can submit them (CSRF): of the identity and the session.
    pub fn form_token(&self, secret: &str) -> String {
        let Identity { sum, .. } = self.identity;
        let kind = self.identity.kind();
        token(&[secret, kind, &digest::hex(&sum), self.session().unwrap_or_default()])
    }
}

pub(super) fn identity_of_key(holder: &Holder) -> Identity {
    Identity { kind: Kind::Key, sum: holder.key.sum() }
}

/// The token of the forms of somebody who is not logged in, by the cookie that came with the form.
pub fn visitors_token(cookie: &str, secret: &str) -> String {
    token(&[secret, "visitor", cookie])
}

/// Lengths stand between the parts, so that no two lists of parts have the same token.
fn token(parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("{} {part}", part.len())).collect();
    digest::sha256(format!("form {parts}"))[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::keys::Key;

    fn key(name: &str, secret: &str) -> Holder {
        Holder { key: Key::new(name, Role::Clinician, secret), load: KeyLoad::default() }
    }

    fn user(name: &str) -> Caller {
        Caller::of_user(name.as_bytes(), |_| KeyLoad::default())
    }

    #[test]
    fn equal_names_are_not_one_caller() {
        let (old, new) = (key("ward", "wr_a"), key("ward", "wr_b"));
        let callers = [
            Caller::of_key(&old),
            Caller::of_key(&new),
            user("ward"),
            user("Ward"),
            user(&digest::hex(&old.key.sum())),
        ];
        for (index, one) in callers.iter().enumerate() {
            for other in &callers[..index] {
                assert_ne!(one.identity(), other.identity());
                assert_ne!(one.identity().shown(), other.identity().shown());
                assert_ne!(one.salt(None), other.salt(None));
                assert_ne!(one.form_token("s"), other.form_token("s"));
            }
        }
        // A session is its key's, and has forms of its own.
        let session = Caller::of_session(&old, "xyz".to_owned());
        assert_eq!(session.identity(), callers[0].identity());
        assert_eq!(session.salt(None), callers[0].salt(None));
        assert_ne!(session.form_token("s"), callers[0].form_token("s"));
        assert_ne!(callers[0].salt(None), callers[0].salt(Some([0; 16])));
    }

    #[test]
    fn every_session_user_and_visitor_has_forms_of_its_own() {
        let ward = key("ward", "wr_a");
        let tokens = [
            Caller::of_session(&ward, "xyz".to_owned()).form_token("s"),
            Caller::of_session(&ward, "xyw".to_owned()).form_token("s"),
            Caller::of_session(&key("ward", "wr_b"), "xyz".to_owned()).form_token("s"),
            Caller::of_key(&ward).form_token("s"),
            user("dr.ho").form_token("s"),
            user("dr.no").form_token("s"),
            visitors_token("xyz", "s"),
            visitors_token("", "s"),
            visitors_token("xyz", "t"),
        ];
        let unlike: std::collections::HashSet<_> = tokens.iter().collect();
        assert_eq!(unlike.len(), tokens.len());
    }

    #[test]
    fn users_of_a_proxy_with_long_names_are_not_taken_for_one_another() {
        let one = user(&format!("{}1", "é".repeat(80)));
        let other = user(&format!("{}2", "é".repeat(80)));
        assert_ne!((one.name(), one.identity()), (other.name(), other.identity()));
        assert_eq!(one.name().chars().count(), MOST_NAME_CHARS);
        assert_eq!(user("dr.ho").name(), "dr.ho");
    }
}
