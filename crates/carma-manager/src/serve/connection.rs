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
use super::access::{Access, Guest};
use super::listen::Listeners;
use super::pages::Pages;
use super::seats::{Seat, SeatOf, Seats};
use super::stalled::{HeldAnswer, StallGuard};
use super::users::UserKey;

/// Connections at once, and those of one user or address.
const MOST_CONNECTIONS: usize = 4096;
const MOST_OF_ONE: usize = 1024;
/// Beside those, for operators.
const KEPT: usize = 64;
/// When all others are taken, it is looked up for so many at once whether they are operators.
const DOUBTED_AT_ONCE: usize = 64;
/// The head of a request, the first or the next, must arrive within this; so must the handshake of TLS.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A client must go on reading its answer within this.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest head.
const LONGEST_HEAD: usize = 64 << 10;
/// What is told to those for whom there is no room.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 64\r\n\r\n\
    {\"kind\":\"unavailable\",\"message\":\"too many connections are open\"}";

/// What is told to those who speak plain HTTP where TLS is spoken.
const NOT_ENCRYPTED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 83\r\n\r\n\
    {\"kind\":\"invalid\",\"message\":\"this port speaks TLS: ask with https://, not http://\"}";

/// Those who are served.
#[derive(Clone)]
pub(super) struct Connections {
    router: Router,
    /// What anybody is told.
    open: Router,
    pages: Arc<Pages>,
    access: Arc<Access>,
    seats: Arc<Seats>,
    doubts: Arc<Semaphore>,
}

/// A connection that was let in, until it ends.
struct Visit {
    guest: Guest,
    /// Shared with what a connection becomes when it is upgraded.
    seat: Arc<Seat>,
    presence: Presence,
}

/// How those who are there hear that all is to end, and it is heard when all have ended: by the channel's end.
#[derive(Clone)]
struct Presence {
    stopping: watch::Receiver<bool>,
    _present: mpsc::Sender<Infallible>,
}

impl Visit {
    fn new(guest: Guest, seat: Seat, presence: &Presence) -> Self {
        Self { guest, seat: Arc::new(seat), presence: presence.clone() }
    }
}

impl Connections {
    pub(super) fn new(router: Router, open: Router, pages: Pages, access: Access) -> Self {
        Self {
            router,
            open,
            pages: Arc::new(pages),
            access: Arc::new(access),
            seats: Seats::new(MOST_CONNECTIONS, MOST_OF_ONE, KEPT),
            doubts: Arc::new(Semaphore::new(DOUBTED_AT_ONCE)),
        }
    }

    /// Serves all that connect until told to stop; then requests under way may still be answered for a while.
    pub(super) async fn serve(self, listeners: Listeners, stop: oneshot::Receiver<()>, grace: Duration) -> Result<(), ServeError> {
        let (tell, stopping) = watch::channel(false);
        let (present, mut absent) = mpsc::channel(1);
        let presence = Presence { stopping, _present: present };
        let local = UnixListener::from_std(listeners.socket.listener.try_clone()?)?;
        let accepted = async {
            let network = async {
                match &listeners.network {
                    Some(network) => self.accept_network(&network.listener, network.tls.as_ref(), &Guest::Network, &presence).await,
                    None => future::pending().await,
                }
            };
            let metrics = async {
                match &listeners.metrics {
                    Some(listener) => self.accept_network(listener, None, &Guest::Anybody, &presence).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                ended = self.accept_local(local, &presence) => ended,
                ended = network => ended,
                ended = metrics => ended,
            }
        };
        let ended: io::Result<Infallible> = tokio::select! {
            ended = accepted => ended,
            _ = stop => Err(io::ErrorKind::Interrupted.into()),
        };
        drop((listeners, presence));
        // Nobody may be connected.
        let _ = tell.send(true);
        let _ = timeout(grace, absent.recv()).await;
        match ended {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn accept_local(&self, listener: UnixListener, presence: &Presence) -> io::Result<Infallible> {
        loop {
            let stream = accept(|| listener.accept()).await.0;
            let Ok(peer) = stream.peer_cred() else { continue };
            let (of, key) = (SeatOf::User(peer.uid()), UserKey::Numbered { uid: peer.uid(), gid: peer.gid() });
            match self.seats.take(of) {
                Some(seat) => tokio::spawn(self.clone().visit(stream, Visit::new(Guest::Local(key), seat, presence))),
                // Looking somebody up may take a while, which the next need not wait for.
                None => tokio::spawn(self.clone().visit_as_operator(stream, of, key, presence.clone())),
            };
        }
    }

    async fn accept_network(
        &self,
        listener: &std::net::TcpListener,
        tls: Option<&TlsAcceptor>,
        guest: &Guest,
        presence: &Presence,
    ) -> io::Result<Infallible> {
        let listener = TcpListener::from_std(listener.try_clone()?)?;
        loop {
            let (stream, address) = accept(|| listener.accept()).await;
            // Without a seat, and perhaps in the midst of a handshake, there is nothing to be said.
            let Some(seat) = self.seats.take(SeatOf::Address(address.ip().to_canonical())) else { continue };
            tokio::spawn(self.clone().visit_from_network(stream, tls.cloned(), Visit::new(guest.clone(), seat, presence)));
        }
    }

    /// Lets in, on a seat that is kept for them, who is an operator.
    async fn visit_as_operator(self, stream: UnixStream, of: SeatOf, key: UserKey, presence: Presence) {
        let seat = match self.doubts.try_acquire() {
            Ok(_doubt) if self.access.is_operator(&key).await => self.seats.take_kept(of),
            _ => None,
        };
        match seat {
            Some(seat) => self.visit(stream, Visit::new(Guest::Local(key), seat, &presence)).await,
            None => drop(stream.try_write(FULL)),
        }
    }

    async fn visit_from_network(self, stream: TcpStream, tls: Option<TlsAcceptor>, visit: Visit) {
        // Small answers go out at once; where that is refused they go out a little later.
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.visit(stream, visit).await,
            Some(tls) => {
                // Others are late, broken, or were told what is wrong.
                if let Ok(Ok(Some(stream))) = timeout(HEAD_TIMEOUT, shake_hands(stream, tls)).await {
                    self.visit(stream, visit).await;
                }
            }
        }
    }

    async fn visit<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S, mut visit: Visit) {
        let open = matches!(visit.guest, Guest::Anybody);
        let router = TowerToHyperService::new(if open { self.open } else { self.router });
        let held = HeldAnswer::default();
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let (guest, access, router) = (visit.guest.clone(), Arc::clone(&self.access), router.clone());
            let (file, held) = (self.pages.answer(&request), held.clone());
            request.extensions_mut().insert(Arc::clone(&visit.seat));
            async move {
                let answer = match file {
                    _ if open => router.call(request).await?,
                    Some(file) => file,
                    None => match access.caller(&guest, request.headers()).await {
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
        server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(LONGEST_HEAD);
        let stream = StallGuard::new(stream, READ_TIMEOUT, held.clone());
        let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service).with_upgrades());
        let told = async {
            // Whoever could tell is gone: then it ends as well.
            let _ = visit.presence.stopping.wait_for(|stopping| *stopping).await;
        };
        // What goes wrong with a connection is its client's to see.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = told => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
}

/// Begins to speak TLS. Whoever speaks plain HTTP instead is told, in plain HTTP.
async fn shake_hands(mut stream: TcpStream, tls: TlsAcceptor) -> io::Result<Option<TlsStream<TcpStream>>> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    if !first[0].is_ascii_uppercase() {
        return tls.accept(stream).await.map(Some);
    }
    // Closed with something unread, the connection would be reset, and the answer might be lost.
    let _ = stream.read(&mut vec![0; LONGEST_HEAD]).await?;
    stream.write_all(NOT_ENCRYPTED).await?;
    stream.shutdown().await?;
    Ok(None)
}

/// Takes the next connection. Without file descriptors left, those who are connected must end first.
async fn accept<T, F: Future<Output = io::Result<T>>>(mut next: impl FnMut() -> F) -> T {
    loop {
        match next().await {
            Ok(accepted) => return accepted,
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Problem, ProblemKind};

    #[test]
    fn those_who_are_not_served_are_told_in_the_same_form() {
        for (answer, kind) in [(FULL, ProblemKind::Unavailable), (NOT_ENCRYPTED, ProblemKind::Invalid)] {
            let (head, body) = std::str::from_utf8(answer).unwrap().split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
            assert!(head.contains(&kind.status().to_string()));
            assert_eq!(serde_json::from_str::<Problem>(body).unwrap().kind, kind);
        }
    }
}
