//! The address of a remote member, as a user types it: `openai:MODEL@URL`.

use std::fmt;
use std::net::IpAddr;

use super::key::WARDROUND_API_KEY;
use crate::diagnosis::Failure;

const SCHEME: &str = "openai:";
const COMPLETIONS: &str = "/chat/completions";

/// A model at an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The server's name of the model; it may contain slashes, colons and `@`.
    pub model: String,
    /// The URL before `/chat/completions`, without a slash at its end.
    pub base: String,
}

impl Address {
    /// Whether a panel's member is an endpoint; else it is a local model.
    pub fn is_meant_by(member: &str) -> bool {
        member.starts_with(SCHEME)
    }

    /// Parses `openai:MODEL@URL`, split at the last `@`; a URL without a path gets `/v1`.
    pub fn parse(member: &str) -> Result<Address, Failure> {
        let wrong = |member: &str, reason: &str| {
            let hint = format!(
                "write openai:MODEL@URL, as in openai:gpt-4o@https://api.openai.com/v1; a key goes into {WARDROUND_API_KEY}"
            );
            Failure::usage(format!("`{member}` is no address of an endpoint: {reason}"), &hint)
        };
        let named = member.strip_prefix(SCHEME).and_then(|rest| rest.rsplit_once('@'));
        let (model, url) = named.unwrap_or_default();
        // With `name:password@host` the password is before the last `@`: the error must not show it.
        if model.contains("://") {
            let member = format!("{SCHEME}…");
            return Err(wrong(&member, "the URL holds a user name or password"));
        }
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let mut known = ["http", "https"].into_iter();
        let scheme = known.find(|known| scheme.eq_ignore_ascii_case(known)).unwrap_or_default();
        let rest = rest.trim_end_matches('/');
        let rest = rest.strip_suffix(COMPLETIONS).unwrap_or(rest);
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_port(authority);
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        let is_plain = rest.chars().all(|char| char.is_ascii_graphic() && !"?#".contains(char));
        let is_model = !model.is_empty() && !model.chars().any(char::is_control);
        if !is_model || scheme.is_empty() || host.is_empty() || !is_port || !is_plain {
            return Err(wrong(member, "it has no model, or no URL http(s)://HOST:PORT/PATH"));
        }
        let path = if path.is_empty() { "/v1" } else { path };
        Ok(Address { model: model.to_owned(), base: format!("{scheme}://{authority}{path}") })
    }

    /// Scheme, host and port: whom a request reaches.
    pub fn origin(&self) -> &str {
        // The third slash is the first of the path.
        let end = self.base.match_indices('/').nth(2).map_or(self.base.len(), |(at, _)| at);
        &self.base[..end]
    }

    /// The host without its port.
    pub fn host(&self) -> &str {
        split_port(self.origin().rsplit('/').next().unwrap_or_default()).0
    }

    /// Whether nobody between here and the endpoint can read what is sent.
    pub fn is_encrypted(&self) -> bool {
        self.base.starts_with("https://")
    }

    /// Whether the endpoint is this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host().trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The URL of chat completions.
    pub fn completions(&self) -> String {
        format!("{}{COMPLETIONS}", self.base)
    }

    /// The URL of the list of models.
    pub fn models(&self) -> String {
        format!("{}/models", self.base)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}@{}", self.model, self.base)
    }
}

/// Host and port; an address of IPv6 keeps its brackets, and has some where a port follows.
fn split_port(place: &str) -> (&str, Option<&str>) {
    let cut = place.rsplit_once(':').filter(|cut| !cut.0.contains(':') || cut.0.ends_with(']'));
    cut.map_or((place, None), |(host, port)| (host, Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(member: &str) -> String {
        Address::parse(member).unwrap().base
    }

    fn reason(member: &str) -> String {
        Address::parse(member).unwrap_err().to_string()
    }

    #[test]
    fn the_last_at_sign_divides_model_and_url() {
        let address = Address::parse("openai:org/model:7b@v2@http://box:8000/v1").unwrap();
        assert_eq!(address.model, "org/model:7b@v2");
        assert_eq!(address.base, "http://box:8000/v1");
        assert_eq!(address.completions(), "http://box:8000/v1/chat/completions");
        assert_eq!(address.models(), "http://box:8000/v1/models");
        assert_eq!(address.to_string(), "openai:org/model:7b@v2@http://box:8000/v1");
        assert_eq!(Address::parse(&address.to_string()).unwrap(), address);
    }

    #[test]
    fn a_url_without_a_path_gets_v1_and_any_other_is_kept() {
        for url in ["http://box", "http://box/", "HTTP://box/v1/", "http://box/v1/chat/completions"]
        {
            assert_eq!(base(&format!("openai:m@{url}")), "http://box/v1", "{url}");
        }
        assert_eq!(base("openai:m@https://host/v1beta/openai/"), "https://host/v1beta/openai");
    }

    #[test]
    fn the_host_stands_without_its_port() {
        for (url, host) in [
            ("https://api.openai.com", "api.openai.com"),
            ("http://10.0.0.1:8000/v1", "10.0.0.1"),
            ("http://[::1]:8000", "[::1]"),
            ("http://[::1]", "[::1]"),
        ] {
            let address = Address::parse(&format!("openai:m@{url}")).unwrap();
            assert_eq!(address.host(), host);
        }
    }

    #[test]
    fn an_origin_is_whom_a_request_reaches() {
        for (url, origin, is_loopback) in [
            ("https://api.openai.com/v1", "https://api.openai.com", false),
            ("http://LOCALHOST:8000", "http://LOCALHOST:8000", true),
            ("http://127.9.0.1/v1/chat/completions", "http://127.9.0.1", true),
            ("http://[::1]:8000", "http://[::1]:8000", true),
            ("http://localhost.example.org", "http://localhost.example.org", false),
            ("http://127.0.0.1.example.org", "http://127.0.0.1.example.org", false),
        ] {
            let address = Address::parse(&format!("openai:m@{url}")).unwrap();
            assert_eq!((address.origin(), address.is_loopback()), (origin, is_loopback));
            assert_eq!(address.is_encrypted(), url.starts_with("https"));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(!Address::is_meant_by("qwen3-4b") && Address::is_meant_by("openai:m@http://a"));
        for member in [
            "openai:gpt-4o",
            "openai:@http://box",
            "openai:m@box:8000",
            "openai:m@ftp://box",
            "openai:m@",
            "openai:m@http://",
            "openai:m@http://:8000/v1",
            "openai:m@http://box:0",
            "openai:m@http://box:99999",
            "openai:m@http://box/v1?key=x",
            "openai:m@http://bo x",
        ] {
            let error = reason(member);
            assert!(error.contains("HOST:PORT/PATH") && error.contains(member), "{error}");
        }
    }

    #[test]
    fn a_password_in_the_url_is_refused_and_not_repeated() {
        let error = reason("openai:m@http://doctor:s3cret@box/v1");
        assert!(error.contains("password") && !error.contains("s3cret"), "{error}");
    }
}
