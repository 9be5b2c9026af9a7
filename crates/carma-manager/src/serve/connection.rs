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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::ServeError;
use super::access::{Access, Guest};
use super::listen::{Listeners, NetworkListener};
use super::seats::{Seat, SeatOf, Seats};
use super::users::UserKey;
use crate::open_files::raise_limit;

/// Connections at once, and those of one user or address.
const MOST_CONNECTIONS: usize = 4096;
const MOST_OF_ONE: usize = 2048;
/// The head of a request, the first or the next, must arrive within this; so must the handshake of TLS.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest head.
const LONGEST_HEAD: usize = 64 << 10;
/// What is told to those for whom there is no room.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 64\r\n\r\n\
    {\"kind\":\"unavailable\",\"message\":\"too many connections are open\"}";

/// Those who are served.
#[derive(Clone)]
pub(super) struct Connections {
    router: Router,
    access: Arc<Access>,
    seats: Arc<Seats>,
}

/// A connection that was let in, until it ends. The channel's end tells when all have ended.
struct Visit {
    guest: Guest,
    _seat: Seat,
    stopping: watch::Receiver<bool>,
    _present: mpsc::Sender<Infallible>,
}

impl Connections {
    pub(super) fn new(router: Router, access: Access) -> Self {
        Self { router, access: Arc::new(access), seats: Seats::new(MOST_CONNECTIONS, MOST_OF_ONE) }
    }

    /// Serves all that connect until told to stop; then requests under way may still be answered for a while.
    pub(super) async fn serve(self, listeners: Listeners, stop: oneshot::Receiver<()>, grace: Duration) -> Result<(), ServeError> {
        // Every connection is one.
        raise_limit();
        let (tell, stopping) = watch::channel(false);
        let (present, mut absent) = mpsc::channel(1);
        let local = UnixListener::from_std(listeners.socket.listener.try_clone()?)?;
        let accepted = async {
            let network = async {
                match &listeners.network {
                    Some(network) => self.accept_network(network, &stopping, &present).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                ended = self.accept_local(local, &stopping, &present) => ended,
                ended = network => ended,
            }
        };
        let ended: io::Result<Infallible> = tokio::select! {
            ended = accepted => ended,
            _ = stop => Err(io::ErrorKind::Interrupted.into()),
        };
        drop((listeners, present));
        // Nobody may be connected.
        let _ = tell.send(true);
        let _ = timeout(grace, absent.recv()).await;
        match ended {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn accept_local(
        &self,
        listener: UnixListener,
        stopping: &watch::Receiver<bool>,
        present: &mpsc::Sender<Infallible>,
    ) -> io::Result<Infallible> {
        loop {
            let stream = accept(|| listener.accept()).await.0;
            let Ok(peer) = stream.peer_cred() else { continue };
            let key = UserKey::Numbered { uid: peer.uid(), gid: peer.gid() };
            match self.seats.take(SeatOf::User(peer.uid())) {
                Some(seat) => {
                    let visit = Visit { guest: Guest::Local(key), _seat: seat, stopping: stopping.clone(), _present: present.clone() };
                    tokio::spawn(self.clone().visit(stream, visit));
                }
                None => drop(stream.try_write(FULL)),
            }
        }
    }

    async fn accept_network(
        &self,
        network: &NetworkListener,
        stopping: &watch::Receiver<bool>,
        present: &mpsc::Sender<Infallible>,
    ) -> io::Result<Infallible> {
        let listener = TcpListener::from_std(network.listener.try_clone()?)?;
        loop {
            let (stream, address) = accept(|| listener.accept()).await;
            // Without a seat, and perhaps in the midst of a handshake, there is nothing to be said.
            let Some(seat) = self.seats.take(SeatOf::Address(address.ip().to_canonical())) else { continue };
            let visit = Visit { guest: Guest::Network, _seat: seat, stopping: stopping.clone(), _present: present.clone() };
            tokio::spawn(self.clone().visit_from_network(stream, network.tls.clone(), visit));
        }
    }

    async fn visit_from_network(self, stream: TcpStream, tls: Option<TlsAcceptor>, visit: Visit) {
        // Small answers go out at once; where that is refused they go out a little later.
        let _ = stream.set_nodelay(true);
        match tls {
            None => self.visit(stream, visit).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
                    self.visit(stream, visit).await;
                }
            }
        }
    }

    async fn visit<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S, mut visit: Visit) {
        let router = TowerToHyperService::new(self.router);
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let (guest, access, router) = (visit.guest.clone(), Arc::clone(&self.access), router.clone());
            async move {
                match access.caller(&guest, request.headers()).await {
                    Ok(caller) => {
                        request.extensions_mut().insert(caller);
                        router.call(request).await
                    }
                    Err(problem) => Ok::<Response<Body>, Infallible>(problem.into_response()),
                }
            }
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(LONGEST_HEAD);
        let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service).with_upgrades());
        let told = async {
            // Whoever could tell is gone: then it ends as well.
            let _ = visit.stopping.wait_for(|stopping| *stopping).await;
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
    fn those_for_whom_there_is_no_room_are_told_in_the_same_form() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert_eq!(serde_json::from_str::<Problem>(body).unwrap().kind, ProblemKind::Unavailable);
    }
}
