//! The proxy that connections go through: that of `WARDROUND_PROXY`. What an environment says to other programs brings no note to one unasked.

#[cfg(any(feature = "hub", feature = "remote"))]
use ureq::{Proxy, ProxyProtocol};

#[cfg(any(feature = "hub", feature = "remote"))]
use super::{HubError, Token};

pub const PROXY: &str = "WARDROUND_PROXY";

/// The proxy of this address.
///
/// # Errors
/// What is none, or speaks SOCKS, which would be gone around.
#[cfg(any(feature = "hub", feature = "remote"))]
pub fn open(address: Option<&Token>) -> Result<Option<Proxy>, HubError> {
    let Some(address) = address else { return Ok(None) };
    let proxy = Proxy::new(address.secret()).ok();
    let is_usable =
        |proxy: &Proxy| matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
    let problem = "no address of a proxy: write http://HOST:PORT".to_owned();
    let bad = HubError::BadVariable { name: PROXY, problem };
    proxy.filter(is_usable).map(Some).ok_or(bad)
}
