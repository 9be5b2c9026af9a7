//! A bridge from a local port to the manager's socket, for browsers, which cannot open Unix sockets. It acts as the user who runs it, so it accepts
//! only requests with its secret, which is new each time.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST};
use axum::http::{HeaderValue, Request};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::UnixStream;

use crate::api::{Problem, ProblemKind};
use crate::serve::{PageFile, Pages, bearer};
use crate::token;

/// The head of a request must arrive within this.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait after a failed accept, for example with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The bridge. It listens, but does not forward yet.
#[derive(Debug)]
pub struct Bridge {
    listener: TcpListener,
    address: SocketAddr,
    pass: Arc<Pass>,
}

#[derive(Debug)]
struct Pass {
    socket: PathBuf,
    secret: String,
    pages: Pages,
}

impl Bridge {
    /// Listens on this port of localhost; 0: any port.
    pub fn bind(port: u16, socket: PathBuf, files: &[PageFile]) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, pass: Arc::new(Pass { socket, secret: token::fresh()?, pages: Pages::new(files) }) })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address for a browser. The secret is after the `#`, which browsers do not send.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.pass.secret)
    }

    /// Forwards requests. Never returns without an error.
    pub fn run(self) -> io::Result<Infallible> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let pass = Arc::clone(&self.pass);
                let service = service_fn(move |request| {
                    let pass = Arc::clone(&pass);
                    async move { Ok::<_, Infallible>(pass.answer(request).await) }
                });
                let mut server = server::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
                // The client sees errors of its connection.
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        })
    }
}

impl Pass {
    async fn answer(&self, request: Request<Incoming>) -> Response {
        if let Some(file) = self.pages.answer(&request) {
            return file;
        }
        if !bearer(request.headers()).is_some_and(|given| token::same(given, &self.secret)) {
            let reason = "wrong secret: open the address that carma web printed last";
            return ProblemKind::Unauthenticated.because(reason).into_response();
        }
        self.forward(request).await.unwrap_or_else(IntoResponse::into_response)
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response, Problem> {
        let away = |error: &dyn std::fmt::Display| ProblemKind::Unavailable.because(format!("the manager does not answer: {error}"));
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| away(&error))?;
        let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.map_err(|error| away(&error))?;
        tokio::spawn(connection);
        let headers = request.headers_mut();
        headers.remove(AUTHORIZATION);
        headers.remove(CONNECTION);
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        let answer = sender.send_request(request).await.map_err(|error| away(&error))?;
        Ok(answer.map(Body::new))
    }
}
