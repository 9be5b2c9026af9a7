//! Connections: accepted, counted, and served one request after the other.

use std::convert::Infallible;
use std::future::{self, Future};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::ServeError;
use super::access::{Access, Peer};
use super::connection_limit::{ConnectionLimit, ConnectionOwner, ConnectionSlot, SharedSlot};
use super::listen::Listeners;
use super::pages::Pages;
use super::refuse::{NOT_ENCRYPTED, REFUSAL_TIMEOUT, refuse};
use super::stalled::{BufferedAnswer, StallGuard};
use super::users::UserKey;
use crate::api::ProblemKind;

/// Maximum number of connections of users of this host: of all, and of one.
const MAX_LOCAL: usize = 4096;
const MAX_PER_OWNER: usize = 1024;
/// The same for users who have sent a valid token over the network.
const MAX_NETWORK: usize = 2048;
/// The same for clients at network addresses that have not. They can never take the connections of others.
const MAX_UNKNOWN: usize = 512;
const MAX_PER_ADDRESS: usize = 128;
/// The same at the address that serves only metrics, without authentication.
const MAX_METRICS: usize = 64;
/// Additional connections for operators.
const RESERVED: usize = 64;
/// Parallel lookups whether a caller is an operator, when all other connections are taken.
const OPERATOR_LOOKUPS: usize = 64;
/// Timeout for the head of a request, and for the TLS handshake.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a client that does not read its answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest head.
const MAX_HEAD: usize = 64 << 10;
/// Connections that are refused at the same time; others are closed without an answer.
const MAX_REFUSALS: usize = 64;

/// Serves connections.
#[derive(Clone)]
pub(super) struct Connections {
    router: Router,
    /// Served without authentication.
    open: Router,
    pages: Arc<Pages>,
    access: Arc<Access>,
    limits: ConnectionLimits,
    operator_lookups: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

/// Limits that do not depend on each other.
#[derive(Clone)]
struct ConnectionLimits {
    local: Arc<ConnectionLimit>,
    network: Arc<ConnectionLimit>,
    /// Over the network, before a valid token was sent.
    unknown: Arc<ConnectionLimit>,
    metrics: Arc<ConnectionLimit>,
}

/// An accepted connection.
struct Connection {
    peer: Peer,
    slot: SharedSlot,
    guard: ShutdownGuard,
}

/// Tells a connection to end, and shows when all connections have ended: their channel closes.
#[derive(Clone)]
struct ShutdownGuard {
    stopping: watch::Receiver<bool>,
    _alive: mpsc::Sender<Infallible>,
}

impl Connection {
    fn new(peer: Peer, slot: ConnectionSlot, guard: &ShutdownGuard) -> Self {
        Self { peer, slot: SharedSlot::new(slot), guard: guard.clone() }
    }
}

impl Connections {
    pub(super) fn new(router: Router, open: Router, pages: Pages, access: Access) -> Self {
        Self {
            router,
            open,
            pages: Arc::new(pages),
            access: Arc::new(access),
            limits: ConnectionLimits {
                local: ConnectionLimit::new(MAX_LOCAL, MAX_PER_OWNER, RESERVED),
                network: ConnectionLimit::new(MAX_NETWORK, MAX_PER_OWNER, 0),
                unknown: ConnectionLimit::new(MAX_UNKNOWN, MAX_PER_ADDRESS, 0),
                metrics: ConnectionLimit::new(MAX_METRICS, MAX_METRICS, 0),
            },
            operator_lookups: Arc::new(Semaphore::new(OPERATOR_LOOKUPS)),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
        }
    }

    /// Serves connections until `stop`. Running requests have the grace time to finish.
    pub(super) async fn serve(self, listeners: Listeners, stop: oneshot::Receiver<()>, grace: Duration) -> Result<(), ServeError> {
        let (stop_all, stopping) = watch::channel(false);
        let (alive, mut all_ended) = mpsc::channel(1);
        let guard = ShutdownGuard { stopping, _alive: alive };
        let local = UnixListener::from_std(listeners.socket.listener.try_clone()?)?;
        let accepted = async {
            let network = async {
                match &listeners.network {
                    Some(network) => self.accept_network(&network.listener, network.tls.as_ref(), &Peer::Network, &guard).await,
                    None => future::pending().await,
                }
            };
            let metrics = async {
                match &listeners.metrics {
                    Some(listener) => self.accept_network(listener, None, &Peer::Unauthenticated, &guard).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                ended = self.accept_local(local, &guard) => ended,
                ended = network => ended,
                ended = metrics => ended,
            }
        };
        let ended: io::Result<Infallible> = tokio::select! {
            ended = accepted => ended,
            _ = stop => Err(io::ErrorKind::Interrupted.into()),
        };
        drop((listeners, guard));
        // There may be no connection.
        let _ = stop_all.send(true);
        let _ = timeout(grace, all_ended.recv()).await;
        match ended {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn accept_local(&self, listener: UnixListener, guard: &ShutdownGuard) -> io::Result<Infallible> {
        loop {
            let stream = accept(|| listener.accept()).await.0;
            let Ok(peer) = stream.peer_cred() else { continue };
            let (of, key) = (ConnectionOwner::User(peer.uid()), UserKey::Numbered { uid: peer.uid(), gid: peer.gid() });
            match self.limits.local.take(of) {
                Some(slot) => tokio::spawn(self.clone().serve_connection(stream, Connection::new(Peer::Local(key), slot, guard))),
                // A user lookup may be slow; the next connection does not wait for it.
                None => tokio::spawn(self.clone().serve_operator(stream, of, key, guard.clone())),
            };
        }
    }

    async fn accept_network(
        &self,
        listener: &std::net::TcpListener,
        tls: Option<&TlsAcceptor>,
        peer: &Peer,
        guard: &ShutdownGuard,
    ) -> io::Result<Infallible> {
        let listener = TcpListener::from_std(listener.try_clone()?)?;
        let limit = if matches!(peer, Peer::Unauthenticated) { &self.limits.metrics } else { &self.limits.unknown };
        loop {
            let (stream, address) = accept(|| listener.accept()).await;
            match limit.take(ConnectionOwner::Address(address.ip().to_canonical())) {
                Some(slot) => {
                    tokio::spawn(self.clone().serve_from_network(stream, tls.cloned(), Connection::new(peer.clone(), slot, guard)))
                }
                None => tokio::spawn(self.clone().refuse_from_network(stream, tls.cloned())),
            };
        }
    }

    /// Accepts an operator on a reserved slot.
    async fn serve_operator(self, stream: UnixStream, of: ConnectionOwner, key: UserKey, guard: ShutdownGuard) {
        let slot = match self.operator_lookups.try_acquire() {
            Ok(_lookup) if self.access.is_operator(&key).await => self.limits.local.take_reserved(of),
            _ => None,
        };
        match slot {
            Some(slot) => self.serve_connection(stream, Connection::new(Peer::Local(key), slot, &guard)).await,
            None => self.refuse(stream).await,
        }
    }

    async fn refuse(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        if let Ok(_permit) = self.refusals.try_acquire() {
            refuse(stream).await;
        }
    }

    async fn refuse_from_network(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        match tls {
            None => self.refuse(stream).await,
            Some(tls) => {
                // No answer is possible before the handshake, which costs more than an answer.
                let Ok(_permit) = self.refusals.try_acquire() else { return };
                if let Ok(Ok(Some(stream))) = timeout(REFUSAL_TIMEOUT, shake_hands(stream, tls)).await {
                    refuse(stream).await;
                }
            }
        }
    }

    async fn serve_from_network(self, stream: TcpStream, tls: Option<TlsAcceptor>, connection: Connection) {
        // Small answers are sent at once. If the system refuses, they are sent a little later.
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.serve_connection(stream, connection).await,
            Some(tls) => {
                // Others are late or broken, or have got an error.
                if let Ok(Ok(Some(stream))) = timeout(HEAD_TIMEOUT, shake_hands(stream, tls)).await {
                    self.serve_connection(stream, connection).await;
                }
            }
        }
    }

    async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S, mut connection: Connection) {
        let open = matches!(connection.peer, Peer::Unauthenticated);
        let router = TowerToHyperService::new(if open { self.open } else { self.router });
        let held = BufferedAnswer::default();
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let (peer, access, router) = (connection.peer.clone(), Arc::clone(&self.access), router.clone());
            let (file, held) = (self.pages.answer(&request), held.clone());
            request.extensions_mut().insert(connection.slot.clone());
            let (slot, known) = (connection.slot.clone(), Arc::clone(&self.limits.network));
            async move {
                let answer = match file {
                    _ if open => router.call(request).await?,
                    Some(file) => file,
                    None => match access.caller(&peer, request.headers()).await {
                        Ok(caller) if matches!(peer, Peer::Network) && !slot.move_to(&known, caller.uid) => too_many(),
                        Ok(caller) => {
                            request.extensions_mut().insert(caller);
                            router.call(request).await?
                        }
                        Err(problem) => problem.into_response(),
                    },
                };
                held.note(&answer);
                Ok::<Response<Body>, Infallible>(answer)
            }
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD);
        let stream = StallGuard::new(stream, READ_TIMEOUT, held.clone());
        let mut connected = pin!(server.serve_connection(TokioIo::new(stream), service).with_upgrades());
        let stop = async {
            // An error means that the server is gone: the connection ends as well.
            let _ = connection.guard.stopping.wait_for(|stopping| *stopping).await;
        };
        // The client sees errors of its connection.
        tokio::select! {
            _ = connected.as_mut() => {}
            () = stop => {
                connected.as_mut().graceful_shutdown();
                let _ = connected.await;
            }
        }
    }
}

/// The answer to a known user with too many connections over the network.
fn too_many() -> Response {
    ProblemKind::Unavailable.because("you have too many connections: close some").into_response()
}

/// Starts TLS. A client that speaks plain HTTP gets an answer in plain HTTP.
async fn shake_hands(mut stream: TcpStream, tls: TlsAcceptor) -> io::Result<Option<TlsStream<TcpStream>>> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    if !first[0].is_ascii_uppercase() {
        return tls.accept(stream).await.map(Some);
    }
    // A connection that is closed with unread data is reset, and the answer may be lost.
    let _ = stream.read(&mut vec![0; MAX_HEAD]).await?;
    stream.write_all(NOT_ENCRYPTED).await?;
    stream.shutdown().await?;
    Ok(None)
}

/// Accepts the next connection. Without free file descriptors, it waits for others to end.
async fn accept<T, F: Future<Output = io::Result<T>>>(mut next: impl FnMut() -> F) -> T {
    loop {
        match next().await {
            Ok(accepted) => return accepted,
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
