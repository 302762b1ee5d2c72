//! The listening socket, its connections, and TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::keys::read_private;
use super::options::Listen;
use crate::diagnosis::Failure;
use crate::outside;

/// The interval of TCP keepalive.
const KEEPALIVE: Duration = Duration::from_secs(30);

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
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    // A socket of both IP versions gives IPv4 addresses as IPv6.
    Ok((stream, peer.ip().to_canonical()))
}

/// A TLS acceptor, where there are files for one.
///
/// # Errors
/// A file that cannot be read; certificates and keys that are missing or do not match.
pub fn tls(listen: &Listen) -> Result<Option<TlsAcceptor>, Failure> {
    let hint = "give PEM files: --tls-cert with the chain, --tls-key with its key";
    // Neither is given without the other.
    let (Some(chain_file), Some(key_file)) = (&listen.tls_cert, &listen.tls_key) else {
        return Ok(None);
    };
    let refuse = |path: &Path, problem: String| {
        Failure::usage(format!("{}: {problem}", path.display()), hint)
    };
    let chain = outside::file(chain_file).map_err(|error| refuse(chain_file, error.to_string()))?;
    let chain: Result<Vec<CertificateDer>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|error| refuse(chain_file, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&read_private(key_file)?);
    let key = key.map_err(|error| refuse(key_file, error.to_string()))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|error| refuse(chain_file, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
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
