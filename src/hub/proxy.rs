//! Which proxy a URL is asked through, as the environment says it to curl. What NO_PROXY means must never reach one: ureq neither trims its
//! entries nor knows ports and ranges. This machine itself is always asked directly: a proxy would ask another.

use std::ffi::OsString;
use std::net::IpAddr;

use ipnet::IpNet;
use thiserror::Error;

use super::Token;
use super::matches;
use crate::fault::faults;

/// What the variables say.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    /// The hosts that are asked directly.
    exceptions: Proxy,
}

/// A variable that is set, and its value, which may hold a name and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    pub variable: &'static str,
    pub url: Token,
}

faults! {
    /// A variable that cannot be followed; going around a proxy, or through one, in spite of it would be worse.
    #[derive(Debug, Error, PartialEq, Eq)]
    pub enum ProxyError {
        #[error("the proxy of {variable} is not http:// or https:// with a host and a port")]
        Unusable { variable: &'static str } => Usage,
            "name a proxy as http://HOST:PORT; NO_PROXY lists the hosts that need none";
        #[error("{variable} has `{entry}`, which is neither a host nor a range of addresses")]
        BadException { variable: &'static str, entry: String } => Usage,
            "write hosts, domains and ranges such as box,.example.org,10.0.0.0/8";
    }
}

impl Proxies {
    /// Reads the variables through `lookup`; an empty one counts as unset.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Proxies {
        let value = |name| lookup(name).unwrap_or_default().to_string_lossy().trim().to_owned();
        let first = |names: &[&'static str]| {
            let mut set = names.iter().map(|&variable| (variable, value(variable)));
            let (variable, value) = set.find(|(_, value)| !value.is_empty())?;
            Some(Proxy { variable, url: Token(value) })
        };
        Proxies {
            http: first(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: first(&["no_proxy", "NO_PROXY"]).unwrap_or_default(),
        }
    }

    /// The proxy that `url` is asked through; `None`: directly. A variable that cannot be followed is an error.
    pub fn of(&self, url: &str) -> Result<Option<&Proxy>, ProxyError> {
        let Some((scheme, host, port)) = parse(url) else { return Ok(None) };
        let proxy = if scheme == "https" { &self.https } else { &self.http };
        let Some(proxy) = proxy else { return Ok(None) };
        let Proxy { variable, url: list } = &self.exceptions;
        let listed = list.secret().split([',', ' ', '\t']).filter(|entry| !entry.is_empty());
        for entry in ["localhost", "127.0.0.0/8", "::1"].into_iter().chain(listed) {
            let bad = || ProxyError::BadException { variable, entry: entry.to_owned() };
            if is_meant(&host, port, entry).ok_or_else(bad)? {
                return Ok(None);
            }
        }
        let place = parse(proxy.url.secret());
        place.map(|_| Some(proxy)).ok_or(ProxyError::Unusable { variable: proxy.variable })
    }
}

/// Whether an exception, in any of the forms of `docs/machines.md`, means this host and port; `None` for one that cannot be read.
fn is_meant(host: &str, port: u16, entry: &str) -> Option<bool> {
    let own = host.parse::<IpAddr>().ok();
    if entry.contains('/') {
        let network: IpNet = entry.replace(['[', ']'], "").parse().ok()?;
        return Some(own.is_some_and(|own| network.contains(&own)));
    }
    let (pattern, wanted) = split_port(entry);
    let is_port = wanted.map_or(Some(true), |wanted| Some(wanted.parse::<u16>().ok()? == port))?;
    let pattern = plain(pattern.trim_start_matches("*.").trim_start_matches('.'));
    let is_below = own.is_none() && host.ends_with(&format!(".{pattern}"));
    Some(is_port && (is_below || matches(&pattern, host)))
}

/// A host as all are compared: in small letters, without brackets and a dot at the end; an address as it is written most shortly.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
    let address = host.parse::<IpAddr>().map(|address| address.to_canonical().to_string());
    address.unwrap_or_else(|_| host.to_ascii_lowercase())
}

/// The scheme, host and port of a URL of HTTP, which that of a proxy may leave to be guessed.
fn parse(url: &str) -> Option<(&'static str, String, u16)> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let mut known = [("http", 80), ("https", 443)].into_iter();
    let (scheme, usual) = known.find(|known| scheme.eq_ignore_ascii_case(known.0))?;
    let place = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    let (host, port) = split_port(place);
    let port = port.map_or(Some(usual), |port| port.parse().ok())?;
    Some((scheme, plain(host), port)).filter(|(_, host, _)| !host.is_empty())
}

/// Host and port; an address of IPv6 keeps its brackets, and has some where a port follows.
pub fn split_port(place: &str) -> (&str, Option<&str>) {
    let cut = place.rsplit_once(':').filter(|cut| !cut.0.contains(':') || cut.0.ends_with(']'));
    cut.map_or((place, None), |(host, port)| (host, Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_lookup(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    /// Whether a URL is asked directly in spite of a proxy.
    fn direct(exceptions: &str, url: &str) -> bool {
        let set = [("ALL_PROXY", "http://proxy:3128"), ("NO_PROXY", exceptions)];
        proxies(&set).of(url).unwrap().is_none()
    }

    #[test]
    fn every_form_of_exception_keeps_what_it_means_from_the_proxy() {
        for (exceptions, inside, outside) in [
            ("example.org", "http://example.org/v1", "http://example.com/v1"),
            ("example.org", "http://ward.Example.org", "http://notexample.org"),
            (".example.org", "http://a.b.example.org", "http://badexample.org"),
            (".example.org", "http://example.org", "http://example.org.evil"),
            ("*.example.org", "https://ward.example.org", "http://example.com"),
            ("localhost, ward.example.org", "http://ward.example.org", "http://example.org"),
            ("a b  example.org\tc", "http://example.org", "http://d"),
            ("box:8000", "http://box:8000/v1", "http://box:8001/v1"),
            ("box:80", "http://box/v1", "https://box/v1"),
            ("box", "http://box:8000/v1", "http://boxes:8000/v1"),
            ("example.org.", "http://example.org", "http://example.com"),
            ("example.org", "http://example.org.:80", "http://org"),
            ("10.0.0.0/8", "http://10.1.2.3:8000", "http://11.1.2.3"),
            ("10.0.0.5", "http://10.0.0.5:8000", "http://10.0.0.50"),
            ("10.0.0.5:8000", "http://10.0.0.5:8000", "http://10.0.0.5:9"),
            ("192.168.*,127.*", "http://192.168.7.9", "http://192.169.7.9"),
            ("0.0.0.0/0", "http://9.9.9.9", "http://[fe80::1]"),
            ("fd00::/8", "http://[fd12::1]:8000", "http://[fe80::1]"),
            ("[fd12::1]", "http://[fd12::1]", "http://[fd12::2]"),
            ("[fd12::1]:8000", "http://[fd12::1]:8000", "http://[fd12::1]:80"),
            ("fd12:0::1", "http://[fd12::1]", "http://[fd12::2]"),
            ("10.0.0.5", "http://[::ffff:10.0.0.5]", "http://[::ffff:10.0.0.6]"),
            ("x", "http://localhost:8000", "http://y"),
            ("x", "http://127.0.0.1:8000", "http://y"),
            ("x", "http://[::1]:8000", "http://y"),
        ] {
            assert!(direct(exceptions, inside), "{inside} with {exceptions}");
            assert!(!direct(exceptions, outside), "{outside} with {exceptions}");
        }
        for exceptions in ["*", "box,*", "*, box"] {
            assert!(
                direct(exceptions, "https://example.org") && direct(exceptions, "http://9.9.9.9")
            );
        }
        assert!(!direct(" , ", "http://example.org"));
    }

    #[test]
    fn an_exception_that_cannot_be_read_is_an_error_not_a_way_to_the_proxy() {
        for entry in
            ["10.0.0.0/33", "10.0.0.0/x", "169.254/16", "ward/8", "box:port", "http://box/"]
        {
            let set = proxies(&[("http_proxy", "proxy"), ("no_proxy", entry)]);
            let error = set.of("http://10.0.0.1").unwrap_err();
            assert!(error.to_string().starts_with(&format!("no_proxy has `{entry}`")), "{error}");
        }
    }

    #[test]
    fn the_scheme_chooses_the_proxy_and_errors_name_it_without_its_password() {
        let set = proxies(&[
            ("HTTPS_PROXY", "http://nurse:secret@proxy:3128/"),
            ("http_proxy", "plain:8080"),
            ("HTTP_PROXY", "other:1"),
            ("ALL_PROXY", "socks5://all:1080"),
            ("NO_PROXY", ""),
        ]);
        let of = |url: &str| set.of(url).unwrap().unwrap();
        let (to_https, to_http) = (of("https://hub"), of("http://hub"));
        assert_eq!((to_https.variable, to_http.variable), ("HTTPS_PROXY", "http_proxy"));
        assert_eq!(to_https.url.secret(), "http://nurse:secret@proxy:3128/");
        assert_eq!(to_http.url.secret(), "plain:8080");
        assert!(!format!("{set:?}").contains("secret"));
        for value in ["socks5h://proxy:1080", "ftp://proxy", "http://proxy:x", "http://u:secret@"] {
            let error = proxies(&[("ALL_PROXY", value)]).of("http://hub").unwrap_err().to_string();
            assert!(error.contains("ALL_PROXY") && !error.contains("secret"), "{error}");
        }
        assert_eq!(proxies(&[]).of("http://hub").unwrap(), None);
    }
}
