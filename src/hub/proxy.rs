//! Which proxy a URL is asked through, from the environment, as curl reads it; for the hub and for endpoints alike.
//!
//! `https_proxy` or `HTTPS_PROXY`, `http_proxy` or `HTTP_PROXY` by the URL's scheme, else `all_proxy` or `ALL_PROXY`. `no_proxy` or
//! `NO_PROXY` names the hosts that are asked directly, separated by commas or spaces: a host or domain with all below it, with or without
//! a dot before it; an address or a range of them (`10.0.0.0/8`, `fd00::/8`); any with a port, which then must be the URL's; `*`, alone
//! for all hosts or in place of any part of one. This machine itself is always asked directly: a proxy would ask another.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

use super::matches;
use crate::fault::faults;

/// What the variables say.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    /// Hosts that are asked directly, and the variable.
    exceptions: Option<(&'static str, String)>,
}

/// A proxy and the variable that names it. Shown without the name and password that its URL may hold.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    variable: &'static str,
    url: String,
}

faults! {
    /// A variable that cannot be followed; going around a proxy, or through one, in spite of it would be worse.
    #[derive(Debug, Error, PartialEq, Eq)]
    pub enum ProxyError {
        #[error("{proxy} cannot be used: {reason}")]
        Unusable { proxy: Proxy, reason: &'static str } => Usage,
            "name a proxy as http://HOST:PORT; NO_PROXY lists the hosts that need none";
        #[error("{variable} has `{entry}`, which is neither a host nor a range of addresses")]
        BadException { variable: &'static str, entry: String } => Usage,
            "write hosts, domains and ranges such as box,.example.org,10.0.0.0/8";
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = parts(&self.url).unwrap_or(("", "", None));
        write!(formatter, "the proxy {scheme}://{host}")?;
        if let Some(port) = port {
            write!(formatter, ":{port}")?;
        }
        write!(formatter, " of {}", self.variable)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Proxy({self})")
    }
}

impl Proxies {
    /// Reads the process's variables.
    pub fn capture() -> Proxies {
        Proxies::from_lookup(|name| env::var_os(name))
    }

    /// Reads the variables through `lookup`; an empty one counts as unset.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Proxies {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|&variable| {
                let value = lookup(variable)?.to_string_lossy().trim().to_owned();
                Some((variable, value)).filter(|(_, value)| !value.is_empty())
            })
        };
        let proxy = |names: &[&'static str]| {
            first(names).map(|(variable, value)| {
                let url = if value.contains("://") { value } else { format!("http://{value}") };
                Proxy { variable, url }
            })
        };
        Proxies {
            http: proxy(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: first(&["no_proxy", "NO_PROXY"]),
        }
    }

    /// The proxy that `url` is asked through; `None`: directly.
    ///
    /// # Errors
    /// A proxy that cannot be used; an exception that cannot be read.
    pub fn of(&self, url: &str) -> Result<Option<&Proxy>, ProxyError> {
        let Some((scheme, host, port)) = parts(url) else { return Ok(None) };
        let is_https = scheme.eq_ignore_ascii_case("https");
        let proxy = if is_https { &self.https } else { &self.http };
        let Some(proxy) = proxy else { return Ok(None) };
        let host = Host::parse(host);
        let port =
            port.and_then(|port| port.parse().ok()).unwrap_or(if is_https { 443 } else { 80 });
        if host.is_this_machine() {
            return Ok(None);
        }
        if let Some((variable, list)) = &self.exceptions {
            for entry in list.split([',', ' ', '\t']).filter(|entry| !entry.is_empty()) {
                let bad = || ProxyError::BadException { variable, entry: entry.to_owned() };
                if host.is_meant_by(port, entry).ok_or_else(bad)? {
                    return Ok(None);
                }
            }
        }
        proxy.check()?;
        Ok(Some(proxy))
    }
}

impl Proxy {
    /// With the name and password that it may hold.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn check(&self) -> Result<(), ProxyError> {
        let reason = match parts(&self.url) {
            Some((scheme, ..)) if scheme.to_ascii_lowercase().starts_with("socks") => {
                "SOCKS is not supported"
            }
            Some((_, host, port))
                if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) =>
            {
                "it has no host, or no port from 1 to 65535"
            }
            Some((scheme, ..)) if ["http", "https"].contains(&&*scheme.to_ascii_lowercase()) => {
                return Ok(());
            }
            _ => "it begins with neither http:// nor https://",
        };
        Err(ProxyError::Unusable { proxy: self.clone(), reason })
    }
}

/// A host as exceptions are compared with it.
enum Host {
    Address(IpAddr),
    /// In lower case, without a dot at the end.
    Name(String),
}

impl Host {
    fn parse(text: &str) -> Host {
        let text = text.trim_start_matches('[').trim_end_matches(']');
        match text.parse::<IpAddr>() {
            Ok(address) => Host::Address(address.to_canonical()),
            Err(_) => Host::Name(text.trim_end_matches('.').to_ascii_lowercase()),
        }
    }

    fn is_this_machine(&self) -> bool {
        match self {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }

    /// Whether an entry of the exceptions means this host and port; `None` for one that cannot be read.
    fn is_meant_by(&self, port: u16, entry: &str) -> Option<bool> {
        let entry = entry.split_once("://").map_or(entry, |(_, rest)| rest);
        let entry = entry.strip_suffix('/').unwrap_or(entry);
        if let Some((network, bits)) = entry.split_once('/') {
            let (network, bits) = range(network, bits)?;
            return Some(match self {
                Host::Address(address) => is_within(*address, network, bits),
                Host::Name(_) => false,
            });
        }
        let (pattern, wanted) = match entry.parse::<IpAddr>() {
            Ok(_) => (entry, None),
            Err(_) => split_port(entry),
        };
        if let Some(wanted) = wanted
            && wanted.parse::<u16>().ok()? != port
        {
            return Some(false);
        }
        let pattern = pattern.strip_prefix("*.").unwrap_or(pattern);
        let pattern = Host::parse(pattern.trim_start_matches('.'));
        Some(match (self, &pattern) {
            (Host::Address(own), Host::Address(other)) => own == other,
            (Host::Name(own), Host::Name(domain)) => {
                let below = own.strip_suffix(domain.as_str());
                let is_below = below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                !domain.is_empty() && is_below || matches(domain, own)
            }
            (Host::Address(own), Host::Name(pattern)) => matches(pattern, &own.to_string()),
            (Host::Name(_), Host::Address(_)) => false,
        })
    }
}

/// A range of addresses; of IPv4 the last numbers may be left out, as in `169.254/16`.
fn range(network: &str, bits: &str) -> Option<(IpAddr, u8)> {
    let network = network.trim_start_matches('[').trim_end_matches(']');
    let dots = network.matches('.').count();
    let network = match network.contains(':') {
        true => network.to_owned(),
        false => format!(
            "{}{}",
            network.trim_end_matches('.'),
            ".0".repeat(3_usize.saturating_sub(dots))
        ),
    };
    let network: IpAddr = network.parse().ok()?;
    let bits: u8 = bits.parse().ok()?;
    let most = if network.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((network, bits))
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differing = u32::from(address) ^ u32::from(network);
            differing.checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differing = u128::from(address) ^ u128::from(network);
            differing.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Scheme, host and port of a URL.
fn parts(url: &str) -> Option<(&str, &str, Option<&str>)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = split_port(place);
    Some((scheme, host, port))
}

/// Host and port; an IPv6 address keeps its brackets.
fn split_port(place: &str) -> (&str, Option<&str>) {
    match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (place, None),
    }
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
            ("169.254/16", "http://169.254.1.1", "http://169.253.1.1"),
            ("0.0.0.0/0", "http://9.9.9.9", "http://[fe80::1]"),
            ("fd00::/8", "http://[fd12::1]:8000", "http://[fe80::1]"),
            ("[fd12::1]", "http://[fd12::1]", "http://[fd12::2]"),
            ("[fd12::1]:8000", "http://[fd12::1]:8000", "http://[fd12::1]:80"),
            ("fd12:0::1", "http://[fd12::1]", "http://[fd12::2]"),
            ("10.0.0.5", "http://[::ffff:10.0.0.5]", "http://[::ffff:10.0.0.6]"),
            ("http://box/", "http://box:8000", "http://example.org"),
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
        for entry in ["10.0.0.0/33", "10.0.0.0/x", "ward/8", "box:port"] {
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
        let said = |url: &str| set.of(url).unwrap().unwrap().to_string();
        assert_eq!(said("https://hub"), "the proxy http://proxy:3128 of HTTPS_PROXY");
        assert_eq!(said("http://hub"), "the proxy http://plain:8080 of http_proxy");
        assert!(!format!("{set:?}").contains("secret"));
        let refused = |value| proxies(&[("ALL_PROXY", value)]).of("http://hub").unwrap_err();
        for (value, reason) in [
            ("socks5h://proxy:1080", "SOCKS is not supported"),
            ("ftp://proxy", "neither http"),
            ("http://proxy:x", "no port"),
            ("http://u:secret@", "no host"),
        ] {
            let error = refused(value).to_string();
            assert!(error.contains(reason) && error.contains("ALL_PROXY"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert_eq!(proxies(&[]).of("http://hub").unwrap(), None);
    }
}
