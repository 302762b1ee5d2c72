//! The listening socket: a TCP port, a Unix socket, or a socket passed by systemd; with or without TLS.

use std::fs::Permissions;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::keys::read_private;
use super::options::Listen;
use crate::diagnosis::Failure;
use crate::outside;

/// The interval of TCP keepalive.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The mode of a Unix socket: for its owner and group.
const SOCKET_MODE: u32 = 0o660;

/// A bound socket.
pub enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: Option<PathBuf> },
}

/// A connection that was accepted.
pub enum Accepted {
    Tcp { stream: TcpStream, peer: IpAddr },
    Unix(UnixStream),
}

impl Accepted {
    /// The client's address; `None` for a Unix socket.
    pub fn peer(&self) -> Option<IpAddr> {
        match self {
            Accepted::Tcp { peer, .. } => Some(*peer),
            Accepted::Unix(_) => None,
        }
    }
}

/// A socket that is bound, and that nobody is accepted on yet.
pub enum Bound {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, Option<PathBuf>),
}

impl Bound {
    /// The socket passed by systemd, else a new one. A socket file on which nobody listens is replaced.
    pub fn new(listen: &Listen) -> Result<Bound, Failure> {
        let mut handed = listenfd::ListenFd::from_env();
        if let Ok(Some(listener)) = handed.take_tcp_listener(0) {
            return Ok(Bound::Tcp(listener));
        }
        if let Ok(Some(listener)) = handed.take_unix_listener(0) {
            return Ok(Bound::Unix(listener, None));
        }
        let Some(path) = &listen.unix else {
            let address = SocketAddr::new(listen.host, listen.port);
            let bound = std::net::TcpListener::bind(address).map_err(|error| {
                let hint = "choose another --port, or 0 for any that is free";
                Failure::usage(format!("cannot listen on {address}: {error}"), hint)
            });
            return bound.map(Bound::Tcp);
        };
        let bound = bind_unix(path).map_err(|error| {
            let hint = "a Unix socket needs a path of its own, up to some 100 bytes, in a directory that is there";
            Failure::usage(format!("cannot listen on {}: {error}", path.display()), hint)
        });
        Ok(Bound::Unix(bound?, Some(path.clone())))
    }
}

impl Listener {
    /// Takes connections of a bound socket.
    pub fn of(bound: Bound) -> io::Result<Listener> {
        match bound {
            Bound::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(TcpListener::from_std(listener)?))
            }
            Bound::Unix(listener, path) => {
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix { listener: UnixListener::from_std(listener)?, path })
            }
        }
    }

    /// The URL of the server.
    pub fn address(&self, is_tls: bool) -> io::Result<String> {
        let scheme = if is_tls { "https" } else { "http" };
        Ok(match self {
            Listener::Tcp(listener) => format!("{scheme}://{}", listener.local_addr()?),
            Listener::Unix { path: Some(path), .. } => {
                format!("{scheme}+unix://{}", path.display())
            }
            Listener::Unix { path: None, .. } => {
                format!("{scheme}+unix: a socket that was handed over")
            }
        })
    }

    /// The IP address of the socket; `None` for a Unix socket.
    pub fn host(&self) -> io::Result<Option<IpAddr>> {
        match self {
            Listener::Tcp(listener) => Ok(Some(listener.local_addr()?.ip())),
            Listener::Unix { .. } => Ok(None),
        }
    }

    /// The next connection. Cancel-safe.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Small events must be sent at once. A failure costs only speed.
                let _ = stream.set_nodelay(true);
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                // A socket of both IP versions gives IPv4 addresses as IPv6.
                Ok(Accepted::Tcp { stream, peer: peer.ip().to_canonical() })
            }
            Listener::Unix { listener, .. } => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix { path: Some(path), .. } = self {
            // In a sandbox it remains; the next server replaces it.
            let _ = fs_err::remove_file(path);
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
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
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    fs_err::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

/// A TLS acceptor, where there are files for one.
///
/// # Errors
/// A file that cannot be read; certificates and keys that are missing or do not match.
pub fn tls(listen: &Listen) -> Result<Option<TlsAcceptor>, Failure> {
    let hint = "give PEM files: --tls-cert with the chain, --tls-key with its key";
    let (chain_file, key_file) = match (&listen.tls_cert, &listen.tls_key) {
        (Some(chain), Some(key)) => (chain, key),
        (None, None) if listen.tls_client_ca.is_none() => return Ok(None),
        // Half of it must not be a server without TLS.
        _ => return Err(Failure::usage("a part of what TLS needs is not given", hint)),
    };
    let refuse = |path: &Path, problem: String| {
        Failure::usage(format!("{}: {problem}", path.display()), hint)
    };
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, Failure> {
        let bytes = outside::file(path).map_err(|error| refuse(path, error.to_string()))?;
        match CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>() {
            Ok(list) if Vec::is_empty(&list) => {
                Err(refuse(path, "it holds no certificate".to_owned()))
            }
            Ok(list) => Ok(list),
            Err(error) => Err(refuse(path, error.to_string())),
        }
    };
    let chain = certificates(chain_file)?;
    let key = read_private(key_file)?;
    let key =
        PrivateKeyDer::from_pem_slice(&key).map_err(|error| refuse(key_file, error.to_string()))?;
    let builder = ServerConfig::builder();
    let builder = match &listen.tls_client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| refuse(path, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            let verifier = verifier.map_err(|error| refuse(path, error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| refuse(chain_file, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_file_is_replaced_only_if_nobody_listens_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("socket");
        let listen = Listen { unix: Some(path.clone()), ..Listen::default() };
        // What a killed server leaves.
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        let running = Listener::of(Bound::new(&listen).unwrap()).unwrap();
        let refused = Bound::new(&listen).err().unwrap().to_string();
        assert!(refused.ends_with("another server listens on it"), "{refused}");
        assert!(path.exists());
        drop(running);
        assert!(!path.exists());
    }

    #[test]
    fn half_of_what_tls_needs_is_no_server_without_it() {
        assert!(tls(&Listen::default()).unwrap().is_none());
        let file = || Some("chain.pem".into());
        for half in [
            Listen { tls_cert: file(), ..Listen::default() },
            Listen { tls_key: file(), ..Listen::default() },
            Listen { tls_client_ca: file(), ..Listen::default() },
        ] {
            let error = tls(&half).err().unwrap().to_string();
            assert_eq!(error, "a part of what TLS needs is not given");
        }
    }

    #[tokio::test]
    async fn a_client_has_its_ipv4_address_on_a_socket_of_both_versions() {
        let socket = std::net::TcpListener::bind("[::]:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Listener::Tcp(TcpListener::from_std(socket).unwrap());
        #[expect(clippy::disallowed_methods, reason = "the test is the client")]
        let connecting = TcpStream::connect(("127.0.0.1", port));
        let (accepted, _client) = tokio::join!(listener.accept(), connecting);
        let Accepted::Tcp { peer, .. } = accepted.unwrap() else {
            panic!("not a TCP connection");
        };
        assert_eq!(peer.to_string(), "127.0.0.1");
    }
}
