//! One connection to a manager. It is kept for many calls, and opened again when closed.

use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::{Address, CA_VARIABLE, Token};
use super::error::ClientError;
use crate::api::{Problem, ProblemKind};
use crate::contact::SERVER_NAME;
use crate::submission_key::{HEADER, SubmissionKey};

/// Timeout for the start of an answer, besides the duration of the call itself.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout for a host that may be down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Certificates that the system trusts, where Debian and its like keep them.
pub(crate) const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) body: Option<Bytes>,
    /// The protocol to upgrade to.
    pub(super) protocol: Option<&'a str>,
    /// The key of a submission.
    pub(super) key: Option<&'a SubmissionKey>,
    /// Timeout for the start of the answer.
    pub(super) timeout_after: Duration,
}

impl<'a> Call<'a> {
    /// A call that is answered at once.
    pub(super) const fn new(method: &'a Method, path: &'a str, body: Option<Bytes>) -> Self {
        Self { method, path, body, protocol: None, key: None, timeout_after: TIMEOUT }
    }

    /// A call that takes this much longer.
    pub(super) fn with_timeout(self, longer: Duration) -> Self {
        Self { timeout_after: TIMEOUT.saturating_add(longer), ..self }
    }
}

/// A connection, with its address and token.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) runtime: Runtime,
    pub(super) address: Address,
    pub(super) token: Option<Token>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    /// Connects.
    pub(super) fn open(address: Address, token: Option<Token>) -> Result<Self, ClientError> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let mut connection = Self { runtime, address, token, sender: None };
        connection.sender = Some(connection.connect()?);
        Ok(connection)
    }

    fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let unreachable = |error| ClientError::Unreachable { address: self.address.clone(), error };
        self.runtime.block_on(async {
            let stream: Box<dyn Stream> = match &self.address {
                Address::Socket(path) => Box::new(UnixStream::connect(path).await.map_err(unreachable)?),
                Address::Network { host, port, encrypted: true } => {
                    let connector = trusting_connector()?;
                    let name = ServerName::try_from(host.clone()).map_err(|error| ClientError::Unusable(format!("{host}: {error}")))?;
                    let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(unreachable)?;
                    Box::new(connector.connect(name, stream).await.map_err(|error| unreachable(in_words(error)))?)
                }
                Address::Own(contact) => {
                    let connector = pinning_connector(&contact.certificate)?;
                    let name = ServerName::try_from(SERVER_NAME).map_err(|error| ClientError::Unusable(error.to_string()))?;
                    let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((contact.host.as_str(), contact.port))).await;
                    let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(unreachable)?;
                    Box::new(connector.connect(name, stream).await.map_err(unreachable)?)
                }
                Address::Network { host, port, encrypted: false } => {
                    let addresses: Vec<_> = (host.as_str(), *port).to_socket_addrs().map_err(unreachable)?.collect();
                    if !addresses.iter().all(|address| address.ip().is_loopback()) {
                        let why = format!("{} is another machine, and http:// is not encrypted: write https://", self.address);
                        return Err(ClientError::Unusable(why));
                    }
                    Box::new(TcpStream::connect(addresses.as_slice()).await.map_err(unreachable)?)
                }
            };
            let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(io::Error::other(error)))?;
            tokio::spawn(driver.with_upgrades());
            Ok(sender)
        })
    }

    /// Sends a call, and returns the head of a successful answer. A call that was not sent is repeated on a new connection.
    pub(super) fn ask(&mut self, call: Call<'_>) -> Result<Response<Incoming>, ClientError> {
        let Call { method, path, body, protocol, key, timeout_after } = call;
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.address.authority());
        request = self.token.iter().fold(request, |request, token| request.header(AUTHORIZATION, token.header()));
        request = body.iter().fold(request, |request, _| request.header(CONTENT_TYPE, "application/json"));
        request = key.iter().fold(request, |request, key| request.header(HEADER, key.as_str()));
        request = protocol.iter().fold(request, |request, protocol| request.header("connection", "upgrade").header("upgrade", *protocol));
        let request = request.body(Full::new(body.unwrap_or_default())).map_err(|error| ClientError::Unusable(error.to_string()))?;
        let response = self.send(request, timeout_after)?;
        if response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let status = response.status();
        let text = self.read(response)?;
        match serde_json::from_slice::<Problem>(&text).unwrap_or_else(|_| unexplained(status, &text)) {
            Problem { kind: ProblemKind::Unauthenticated, .. } if self.token.is_none() => Err(ClientError::NoToken(self.address.clone())),
            problem => Err(problem.into()),
        }
    }

    fn send(&mut self, mut request: Request<Full<Bytes>>, timeout_after: Duration) -> Result<Response<Incoming>, ClientError> {
        loop {
            let (mut sender, kept) = match self.sender.take() {
                Some(sender) => (sender, true),
                None => (self.connect()?, false),
            };
            let answer = self.runtime.block_on(async {
                // The connection may have been closed since the last call; sending shows that.
                tokio::task::yield_now().await;
                let _ = sender.ready().await;
                tokio::time::timeout(timeout_after, sender.try_send_request(request)).await
            });
            match answer {
                Err(_) => return Err(ClientError::BrokenOff(format!("silence for {} s", timeout_after.as_secs()))),
                Ok(Ok(response)) => {
                    self.sender = Some(sender);
                    return Ok(response);
                }
                Ok(Err(mut failure)) => match failure.take_message().filter(|_| kept) {
                    Some(unsent) => request = unsent,
                    None => return Err(ClientError::BrokenOff(failure.into_error().to_string())),
                },
            }
        }
    }

    /// Reads all of an answer.
    pub(super) fn read(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = self.runtime.block_on(response.into_body().collect());
        body.map(http_body_util::Collected::to_bytes).map_err(|error| ClientError::BrokenOff(error.to_string()))
    }
}

/// An error of something that is not the manager: a proxy in between, or another program on that port.
fn unexplained(status: StatusCode, text: &[u8]) -> Problem {
    let text: String = String::from_utf8_lossy(text).chars().filter(|letter| !letter.is_control()).take(200).collect();
    ProblemKind::Internal.because(format!("refused with {status}: {text}"))
}

/// An error of a handshake, with what to do about it where that is known.
fn in_words(error: io::Error) -> io::Error {
    let text = error.to_string();
    let words = match () {
        () if text.contains("CaUsedAsEndEntity") => {
            "its certificate is one of an authority (CA:TRUE), which TLS does not accept from a server: make it with \
             `openssl req -x509 -addext basicConstraints=critical,CA:FALSE` (docs/security.md)"
        }
        () if text.contains("UnknownIssuer") => {
            "its certificate is not trusted here: CARMA_CA names a file with it, or with its authority (docs/security.md)"
        }
        () => return error,
    };
    io::Error::new(error.kind(), words)
}

/// Trusts one certificate, and no authority.
fn pinning_connector(certificate: &str) -> Result<TlsConnector, ClientError> {
    let unusable = |why: &dyn std::fmt::Display| ClientError::Unusable(format!("cannot use the certificate of the manager: {why}"));
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| unusable(&error))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(|error| unusable(&error))?;
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()).into())
}

/// Trusts the certificates in the variable's file, or else those of the system.
fn trusting_connector() -> Result<TlsConnector, ClientError> {
    let file = std::env::var_os(CA_VARIABLE).unwrap_or_else(|| SYSTEM_ROOTS.into());
    let unusable = |why: &dyn std::fmt::Display| {
        ClientError::Unusable(format!("cannot use the certificates in {}: {why}; {CA_VARIABLE} names others", Path::new(&file).display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&file).map_err(|error| unusable(&error))? {
        roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"there are none in it"));
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()).into())
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::{CertificateError, Error, OtherError};

    use super::*;

    #[test]
    fn errors_of_certificates_say_what_to_do() {
        #[derive(Debug, thiserror::Error)]
        #[error("as webpki says it")]
        struct CaUsedAsEndEntity;
        let other = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        let words =
            |error: CertificateError| in_words(io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(error))).to_string();
        assert!(words(other).contains("CA:FALSE"));
        assert!(words(CertificateError::UnknownIssuer).contains("CARMA_CA"));
        assert!(words(CertificateError::Expired).contains("xpired"), "others stay as they are");
    }
}
