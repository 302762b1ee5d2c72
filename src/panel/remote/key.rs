//! The API key of an endpoint, from an environment variable; never shown.

use std::env;
use std::ffi::OsString;
use std::fmt;

use super::Address;
use crate::diagnosis::Failure;

/// The key of the endpoints that the user names: whoever hands over a plan or a recipe must not choose whom it, or a question, is sent
/// to. An endpoint of this machine may have it too; a host may have a variable of its own, whose name ends with it:
/// `WARDROUND_API_KEY_API_OPENAI_COM`.
pub const WARDROUND_API_KEY: &str = "WARDROUND_API_KEY";
/// The key of hosts under openai.com, as OpenAI's own tools read it.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// A shorter key is a word, given to an endpoint that asks for none.
const SHORTEST_SECRET: usize = 12;

/// An API key; its debug form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The environment variable that it is from.
    pub variable: String,
    secret: String,
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ApiKey({}=***)", self.variable)
    }
}

impl ApiKey {
    /// The key for `address`, from the process's environment; `None` where no variable has one.
    pub fn capture(address: &Address) -> Result<Option<ApiKey>, Failure> {
        let arguments = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
        let arguments: Vec<String> = arguments.collect();
        ApiKey::from_lookup(address, &arguments, |name| env::var_os(name))
    }

    /// The first that is set of the endpoint's own variable, `WARDROUND_API_KEY`, and, for openai.com alone, `OPENAI_API_KEY`: a key that
    /// is in the environment for another tool is sent to no other host. An empty variable counts as unset.
    ///
    /// # Errors
    /// An endpoint that is not this machine, has no variable of its own, and is named by none of the `arguments`: only a file names it,
    /// which may be a stranger's. A key that cannot be sent in a header; one that is not the endpoint's own and would cross a network
    /// without TLS.
    pub fn from_lookup(
        address: &Address,
        arguments: &[String],
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<ApiKey>, Failure> {
        if let Some(own) = ApiKey::read(own_variable(address.host()), &lookup)? {
            return Ok(Some(own));
        }
        let is_near = address.is_loopback();
        if !is_near && !is_named(address, arguments) {
            let hint = format!(
                "if the items may go there, name it with --panel, or set {} to its key (to any word if it needs none)",
                own_variable(address.host())
            );
            let message = format!("{address} is not asked: no argument of this command names it");
            return Err(Failure::usage(message, &hint));
        }
        let host = format!(".{}", address.host().to_ascii_lowercase());
        let is_openai = host.ends_with(".openai.com");
        let shared = match ApiKey::read(WARDROUND_API_KEY.to_owned(), &lookup)? {
            None if is_openai => ApiKey::read(OPENAI_API_KEY.to_owned(), &lookup)?,
            general => general,
        };
        match shared {
            Some(ApiKey { variable, .. }) if !is_near && !address.is_encrypted() => {
                let own = own_variable(address.host());
                Err(Failure::usage(
                    format!(
                        "the key in {variable} is not sent to {address}: the connection is not encrypted"
                    ),
                    &format!("use https, or set {own} to a key that others may read on its way"),
                ))
            }
            shared => Ok(shared),
        }
    }

    /// The key in a variable; `None` where it is not set or empty.
    fn read(
        variable: String,
        lookup: &impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<ApiKey>, Failure> {
        let Some(value) = lookup(&variable) else { return Ok(None) };
        let secret = value.to_string_lossy().trim().to_owned();
        match secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Some(ApiKey { variable, secret }).filter(|key| !key.secret.is_empty())),
            false => Err(Failure::refused(format!("{variable} holds characters that no key has"))),
        }
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// A text with `***` in place of the key, which some servers repeat.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.secret, "***")
    }

    /// Whether it is a word that a model may mean: what it says keeps it.
    pub fn is_word(&self) -> bool {
        self.secret.len() < SHORTEST_SECRET
    }
}

/// Whether an argument names an endpoint of the same origin: alone, in a list, or behind a `=`.
fn is_named(address: &Address, arguments: &[String]) -> bool {
    let is_it = |text: &str| {
        Address::parse(text.trim())
            .is_ok_and(|named| named.origin().eq_ignore_ascii_case(address.origin()))
    };
    arguments
        .iter()
        .flat_map(|argument| argument.split(','))
        .any(|item| is_it(item) || item.match_indices('=').any(|(at, _)| is_it(&item[at + 1..])))
}

/// The variable of one host, which no other has: letters in upper case, `_` for a dot, `__` for a hyphen between letters or digits, and
/// for anything else `___` and its two hexadecimal digits.
pub fn own_variable(host: &str) -> String {
    let bytes = host.as_bytes();
    let is_plain = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let mut name = format!("{WARDROUND_API_KEY}_");
    for (at, byte) in bytes.iter().enumerate() {
        // The first has none before it.
        let before = at.wrapping_sub(1);
        match byte {
            _ if is_plain(at) => name.push(char::from(byte.to_ascii_uppercase())),
            b'.' if bytes.get(before) != Some(&b'.') => name.push('_'),
            b'-' if is_plain(before) && is_plain(at + 1) => name.push_str("__"),
            _ => name.push_str(&format!("___{byte:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The key for an endpoint that the command names.
    fn key(url: &str, variables: &[(&str, &str)]) -> Result<Option<ApiKey>, Failure> {
        key_by(url, &["--panel", &format!("openai:other@{url}")], variables)
    }

    fn key_by(
        url: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Option<ApiKey>, Failure> {
        let address = Address::parse(&format!("openai:m@{url}")).unwrap();
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        ApiKey::from_lookup(&address, &arguments, |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn an_endpoints_own_variable_comes_first() {
        let all = [
            ("WARDROUND_API_KEY_API_OPENAI_COM", "own\n"),
            (WARDROUND_API_KEY, "any"),
            (OPENAI_API_KEY, "openai"),
        ];
        for (skip, secret) in ["own", "any", "openai"].iter().enumerate() {
            let found = key("https://api.openai.com/v1", &all[skip..]).unwrap();
            assert_eq!(found.unwrap().secret(), *secret);
        }
        assert_eq!(key("https://api.openai.com", &[]).unwrap(), None);
        assert_eq!(key("http://box", &[(WARDROUND_API_KEY, " ")]).unwrap(), None);
    }

    #[test]
    fn openais_key_goes_to_openai_alone() {
        for url in ["http://box:8000", "https://api.openai.com.example.org"] {
            assert_eq!(key(url, &[(OPENAI_API_KEY, "secret")]).unwrap(), None);
        }
    }

    #[test]
    fn only_endpoints_that_the_user_names_are_asked_and_get_the_users_key() {
        let general = [(WARDROUND_API_KEY, "hush")];
        let url = "https://api.example.org/v1";
        let named = "openai:other@https://API.example.org/v2";
        for arguments in [
            &["wardround", "run", "--panel", named][..],
            &["wardround", "resume", "out", &format!("--panel=qwen3-4b,{named}")],
            &["wardround", "run", "--set", &format!("slot.sym={named}")],
        ] {
            let found = key_by(url, arguments, &general).unwrap();
            assert_eq!(found.unwrap().secret(), "hush", "{arguments:?}");
        }
        // A plan names it, or the command another host, port or scheme.
        for arguments in [
            &["wardround", "resume", "out"][..],
            &["wardround", "resume", "openai.org/x/openai:m@https://api.example.org"],
            &["--panel", "openai:m@https://example.org"],
            &["--panel", "openai:m@https://api.example.org:444"],
            &["--panel", "openai:m@http://api.example.org"],
        ] {
            for variables in [&general[..], &[]] {
                let error = key_by(url, arguments, variables).unwrap_err();
                assert!(error.to_string().contains("no argument"), "{arguments:?}: {error}");
                assert!(error.hint().unwrap().contains("WARDROUND_API_KEY_API_EXAMPLE_ORG"));
            }
        }
        let own = [("WARDROUND_API_KEY_API_EXAMPLE_ORG", "own"), general[0]];
        assert_eq!(key_by(url, &[], &own).unwrap().unwrap().secret(), "own");
        for url in ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:9"] {
            assert_eq!(key_by(url, &[], &general).unwrap().unwrap().secret(), "hush", "{url}");
            assert_eq!(key_by(url, &[], &[]).unwrap(), None);
        }
    }

    #[test]
    fn a_key_of_many_hosts_crosses_no_network_in_the_clear() {
        for (url, variable) in
            [("http://box:8000", WARDROUND_API_KEY), ("http://api.openai.com", OPENAI_API_KEY)]
        {
            let error = key(url, &[(variable, "hush")]).unwrap_err();
            let is_refused = error.to_string().contains("is not encrypted");
            assert!(is_refused && error.to_string().contains(variable), "{error}");
        }
        let own = key("http://box:8000", &[("WARDROUND_API_KEY_BOX", "own")]).unwrap();
        assert_eq!(own.unwrap().secret(), "own");
    }

    #[test]
    fn no_two_hosts_have_the_same_variable() {
        let variable = |host: &str| {
            let name = own_variable(host);
            name.strip_prefix("WARDROUND_API_KEY_").unwrap().to_owned()
        };
        assert_eq!(variable("api.openai.com"), "API_OPENAI_COM");
        assert_eq!(variable("API-openai.com"), "API__OPENAI_COM");
        assert_eq!(variable("xn--a.org"), "XN___2D___2DA_ORG");
        assert_eq!(variable("[::1]"), "___5B___3A___3A1___5D");
        // Every host of up to six of these characters.
        let mut names = HashSet::new();
        let mut hosts = vec![String::new()];
        for _ in 0..6 {
            let longer = hosts.iter().flat_map(|host| {
                [".", "-", "_", "2", "d", "e"].map(|more| format!("{host}{more}"))
            });
            hosts = longer.collect();
            for host in &hosts {
                assert!(names.insert(own_variable(host)), "{host}");
            }
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let shown = format!("{:?}", key("https://box", &[(WARDROUND_API_KEY, "hush")]));
        assert!(shown.contains(WARDROUND_API_KEY) && !shown.contains("hush"), "{shown}");
        let error = key("https://box", &[(WARDROUND_API_KEY, "hu\nsh")]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hu\nsh"), "{error}");
    }
}
