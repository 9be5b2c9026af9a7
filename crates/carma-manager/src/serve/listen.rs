//! Listeners: the socket, and the configured network addresses.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tokio_rustls::TlsAcceptor;

use super::ServeError;
use crate::configuration::{ManagerConfig, NetworkConfig};
use crate::network_files::{Tokens, UnusableFile, acceptor};
use crate::places::create_private;

/// The longest socket path of the kernel.
const MAX_PATH: usize = 107;

/// All listeners.
#[derive(Debug)]
pub(super) struct Listeners {
    pub(super) socket: Socket,
    pub(super) network: Option<NetworkListener>,
    /// Serves metrics only, without authentication.
    pub(super) metrics: Option<TcpListener>,
}

impl Listeners {
    pub(super) fn bind(socket: &Path, settings: &ManagerConfig, network: &NetworkConfig) -> Result<Self, ServeError> {
        let network = NetworkListener::bind(network)?;
        let metrics = settings.metrics.listen.map(|address| bind("manager.metrics.listen", address)).transpose()?;
        let refused = |source| ServeError::Socket { path: socket.to_owned(), source };
        Ok(Self { socket: Socket::bind(socket, rustix::process::geteuid().is_root()).map_err(refused)?, network, metrics })
    }
}

/// The key of the address for clients on other hosts.
const NETWORK: &str = "manager.network.listen";

/// A Unix socket, whose file is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    pub(super) listener: UnixListener,
}

impl Socket {
    /// Creates the socket, for all users or for its own user only. A socket left by a dead manager is replaced: the store's lock excludes a live one.
    fn bind(path: &Path, for_everybody: bool) -> io::Result<Self> {
        // Created under another name and renamed, so that clients never see it with wrong permissions.
        let new = path.with_extension("new");
        if new.as_os_str().len() > MAX_PATH {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a socket path may have at most {MAX_PATH} bytes: use a shorter one"),
            ));
        }
        path.parent().map_or(Ok(()), |folder| if for_everybody { create_public(folder) } else { create_private(folder) })?;
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, Permissions::from_mode(if for_everybody { 0o666 } else { 0o600 }))?;
        fs::rename(&new, path)?;
        listener.set_nonblocking(true)?;
        Ok(Self { path: path.to_owned(), listener })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be gone already, and the next manager replaces it anyway.
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of a socket for all users.
fn create_public(folder: &Path) -> io::Result<()> {
    if folder.is_dir() || folder.as_os_str().is_empty() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    // Independent of the umask.
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}

/// A network listener, with its tokens and certificate.
pub(super) struct NetworkListener {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
    tokens: PathBuf,
    address: SocketAddr,
}

impl std::fmt::Debug for NetworkListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkListener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl NetworkListener {
    /// Binds the address, if one is configured with tokens. Without a certificate, only loopback addresses are allowed.
    fn bind(settings: &NetworkConfig) -> Result<Option<Self>, ServeError> {
        let (Some(address), Some(tokens)) = (settings.listen, settings.tokens.clone()) else { return Ok(None) };
        Tokens::check(&tokens).map_err(|reason| ServeError::File { path: tokens.clone(), reason })?;
        let tls = settings.certificate.as_deref().zip(settings.key.as_deref()).map(|(certificate, key)| acceptor(certificate, key));
        let tls = tls.transpose().map_err(|UnusableFile { path, reason, .. }| ServeError::File { path, reason })?;
        let refused = |source| ServeError::Address { key: NETWORK, address, source };
        if tls.is_none() && !address.ip().is_loopback() {
            return Err(refused(io::Error::other("without a certificate, only this host may connect")));
        }
        let listener = bind(NETWORK, address)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Some(Self { listener, tls, tokens, address }))
    }

    /// Its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file of tokens.
    pub(super) fn tokens(&self) -> &Path {
        &self.tokens
    }
}

fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(address).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    bound.map_err(|source| ServeError::Address { key, address, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_dead_managers_socket_is_replaced_and_the_file_removed_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/carma.sock");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dead = Socket::bind(&path, false).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        // Killed, it has removed nothing.
        std::mem::forget(dead);
        let alive = Socket::bind(&path, true).unwrap();
        assert_eq!(mode(&path), 0o666);
        UnixStream::connect(&path).unwrap();
        drop(alive);
        assert!(!path.exists());
        let _shared = Socket::bind(&folder.path().join("shared/carma.sock"), true).unwrap();
        assert_eq!(mode(&folder.path().join("shared")), 0o755);
    }

    #[test]
    fn a_path_that_is_too_long_is_refused_with_words() {
        let error = Socket::bind(&Path::new("/").join("x".repeat(120)), false).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }
}
