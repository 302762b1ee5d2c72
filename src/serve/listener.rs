//! The listening socket: a TCP port or a Unix socket; with or without TLS.

use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as BoundUnix;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::guard::Peer;
use super::keys::read_private;
use super::options::Listen;
use crate::diagnosis::Failure;
use crate::outside;

/// The interval of TCP keepalive.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The mode of a Unix socket: for its owner and group.
const SOCKET_MODE: u32 = 0o660;

/// A socket that is bound, and that nobody is accepted on yet.
pub enum Bound {
    Tcp(std::net::TcpListener),
    Unix(BoundUnix),
}

/// A socket that takes connections.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// What is spoken over.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<S: AsyncRead + AsyncWrite + Send> Duplex for S {}

/// A connection that was accepted.
pub type Stream = Pin<Box<dyn Duplex>>;

impl Bound {
    /// A socket file on which nobody listens is replaced.
    pub fn new(listen: &Listen) -> Result<Bound, Failure> {
        let tcp = SocketAddr::new(listen.host, listen.port);
        let (bound, address) = match &listen.unix {
            None => (std::net::TcpListener::bind(tcp).map(Bound::Tcp), tcp.to_string()),
            Some(path) => (bind_unix(path).map(Bound::Unix), path.display().to_string()),
        };
        let hint = "choose another --port, 0 for any that is free, or for --unix a path of up to some 100 bytes in a directory that is there";
        bound.map_err(|error| Failure::usage(format!("cannot listen on {address}: {error}"), hint))
    }

    /// The URL of the server.
    pub fn address(&self, is_tls: bool) -> io::Result<String> {
        let scheme = if is_tls { "https" } else { "http" };
        Ok(match self {
            Bound::Tcp(listener) => format!("{scheme}://{}", listener.local_addr()?),
            Bound::Unix(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().unwrap_or(Path::new("?"));
                format!("{scheme}+unix://{}", path.display())
            }
        })
    }

    /// Takes connections.
    pub fn listen(self) -> io::Result<Listener> {
        match self {
            Bound::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Listener::Tcp)
            }
            Bound::Unix(listener) => {
                listener.set_nonblocking(true)?;
                UnixListener::from_std(listener).map(Listener::Unix)
            }
        }
    }
}

impl Listener {
    /// The next connection, and whose it is. Cancel-safe.
    pub async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Small events must be sent at once. A failure costs only speed.
                let _ = stream.set_nodelay(true);
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                // A socket of both IP versions gives IPv4 addresses as IPv6.
                Ok((Box::pin(stream), Peer::Address(peer.ip().to_canonical())))
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Ok((Box::pin(stream), Peer::User(user)))
            }
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<BoundUnix> {
    let is_socket = fs_err::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        #[expect(clippy::disallowed_methods, reason = "a server of this machine is asked for")]
        let answers = std::os::unix::net::UnixStream::connect(path).is_ok();
        // The socket of a server that was killed refuses.
        if answers {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens on it"));
        }
        fs_err::remove_file(path)?;
    }
    let listener = BoundUnix::bind(path)?;
    fs_err::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
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
    use crate::serve::options::tests::unsaid;

    #[test]
    fn a_socket_file_is_replaced_only_if_nobody_listens_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("socket");
        let listen = Listen { unix: Some(path.clone()), ..unsaid().listen };
        // What a killed server leaves.
        drop(BoundUnix::bind(path).unwrap());
        let running = Bound::new(&listen).unwrap();
        let refused = Bound::new(&listen).err().unwrap().to_string();
        assert!(refused.ends_with("another server listens on it"), "{refused}");
        drop(running);
        assert!(Bound::new(&listen).is_ok());
    }

    #[tokio::test]
    async fn a_client_has_its_ipv4_address_on_a_socket_of_both_versions() {
        let socket = std::net::TcpListener::bind("[::]:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Bound::Tcp(socket).listen().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test is the client")]
        let connecting = tokio::net::TcpStream::connect(("127.0.0.1", port));
        let (accepted, _client) = tokio::join!(listener.accept(), connecting);
        assert_eq!(accepted.unwrap().1.to_string(), "127.0.0.1");
    }
}
