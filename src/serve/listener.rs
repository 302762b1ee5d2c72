//! The listening socket, and its connections.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};

use super::options::Listen;
use crate::diagnosis::Failure;

/// A socket that is bound, and that nobody is accepted on yet.
pub fn bind(listen: &Listen) -> Result<std::net::TcpListener, Failure> {
    let address = SocketAddr::new(listen.host, listen.port);
    std::net::TcpListener::bind(address).map_err(|error| {
        let hint = "choose another --port, 0 for any that is free";
        Failure::usage(format!("cannot listen on {address}: {error}"), hint)
    })
}

/// The next connection, and its address. Cancel-safe.
pub async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, IpAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Small events must be sent at once. A failure costs only speed.
    let _ = stream.set_nodelay(true);
    // A socket of both IP versions gives IPv4 addresses as IPv6.
    Ok((stream, peer.ip().to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_has_its_ipv4_address_on_a_socket_of_both_versions() {
        let listener = TcpListener::bind("[::]:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "the test is the client")]
        let connecting = TcpStream::connect(("127.0.0.1", port));
        let (accepted, _client) = tokio::join!(accept(&listener), connecting);
        assert_eq!(accepted.unwrap().1.to_string(), "127.0.0.1");
    }
}
