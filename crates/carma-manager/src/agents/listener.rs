//! Accepts the connections of agents.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener as AsyncListener, TcpStream};
use tokio::runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::executor::AgentExecutor;
use super::session::{AgentReport, Session};
use crate::agent::AddressFile;
use crate::link::{Cipher, Decryptor, Encryptor, FromAgent, Handshake, Secret, SecretError, ToAgent};

/// How long an agent may take to prove that it knows the secret, and to introduce itself.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections without a proven secret at a time. Further ones wait in the kernel.
const MAX_UNAUTHENTICATED: usize = 64;
/// How long a message to an agent may take.
const WRITE: Duration = Duration::from_secs(10);

/// Why agents cannot connect.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("manager.agents.listen: cannot listen for agents on {address}: {source}")]
    Address { address: SocketAddr, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// What tasks of connections use.
struct Shared {
    secret: Secret,
    executor: Arc<AgentExecutor>,
    report: Box<dyn Fn(AgentReport) -> bool + Send + Sync>,
}

/// Listens for agents, until the process ends.
#[derive(Debug)]
pub(crate) struct AgentListener {
    address: SocketAddr,
}

impl AgentListener {
    /// Listens on an address, and tells agents in the folder of the manager's state where to connect and with which secret.
    pub(crate) fn start(
        address: SocketAddr,
        names: &[String],
        state: &Path,
        executor: Arc<AgentExecutor>,
        report: impl Fn(AgentReport) -> bool + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        let secret = Secret::read_or_create(&secret_file(state))?;
        let refused = |source| ListenError::Address { address, source };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        write_address(&address_file(state), address, names)?;
        let shared = Arc::new(Shared { secret, executor, report: Box::new(report) });
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).thread_name("agents").enable_all().build();
        let runtime = runtime.map_err(refused)?;
        let serve = move || {
            if let Err(error) = runtime.block_on(accept(listener, shared)) {
                tracing::error!("agents can no longer connect: {error}");
            }
        };
        thread::Builder::new().name("agents".to_owned()).spawn(serve).map_err(refused)?;
        Ok(Self { address })
    }

    /// Its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The secret that the manager shares with its agents.
pub(crate) fn secret_file(state: &Path) -> PathBuf {
    state.join("agents.secret")
}

/// Where agents find the manager.
pub(crate) fn address_file(state: &Path) -> PathBuf {
    state.join("agents.json")
}

fn write_address(path: &Path, address: SocketAddr, names: &[String]) -> Result<(), ListenError> {
    let refused = |source| ListenError::File { path: path.to_owned(), source };
    let content = AddressFile { addresses: names.iter().map(|name| format!("{name}:{}", address.port())).collect() };
    let new = path.with_extension("new");
    let json = serde_json::to_vec(&content).map_err(io::Error::from).map_err(refused)?;
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
    file.and_then(|mut file| file.write_all(&json).and_then(|()| file.sync_all())).map_err(refused)?;
    fs::rename(&new, path).map_err(refused)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let listener = AsyncListener::from_std(listener)?;
    let unproven = Arc::new(Semaphore::new(MAX_UNAUTHENTICATED));
    loop {
        let Ok(permit) = Arc::clone(&unproven).acquire_owned().await else { return Ok(()) };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Too many open files, or a connection that is gone already.
            Err(error) => {
                warn_rarely(&format!("cannot accept an agent: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let proven = timeout(HANDSHAKE, greet(stream, &shared)).await;
            drop(permit);
            match proven {
                Ok(Ok((connection, hello))) => connection.serve(hello, &shared).await,
                Ok(Err(error)) => warn_rarely(&format!("refused the connection of an agent: {error}")),
                Err(_) => warn_rarely("an agent did not authenticate in time"),
            }
        });
    }
}

/// An agent that knows the secret.
struct AgentConnection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    cipher: Cipher,
}

async fn greet(stream: TcpStream, shared: &Shared) -> io::Result<(AgentConnection, Box<crate::link::AgentHello>)> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = stream.into_split();
    let mut handshake = Handshake::manager(&shared.secret).map_err(io::Error::other)?;
    handshake.read(&read_frame(&mut reader).await?).map_err(io::Error::other)?;
    writer.write_all(&handshake.write().map_err(io::Error::other)?).await?;
    let mut cipher = handshake.finish().map_err(io::Error::other)?;
    loop {
        let content = read_frame(&mut reader).await?;
        match cipher.opener.open(&content).map_err(io::Error::other)? {
            None => {}
            Some(FromAgent::Hello(hello)) => return Ok((AgentConnection { reader, writer, cipher }, hello)),
            Some(_) => return Err(io::Error::other("an agent did not introduce itself")),
        }
    }
}

impl AgentConnection {
    /// Passes messages in both directions until the connection ends.
    async fn serve(self, hello: Box<crate::link::AgentHello>, shared: &Shared) {
        let (orders, waiting) = mpsc::unbounded_channel();
        let session = Session::new(orders);
        let node = hello.node.clone();
        if !(shared.report)(AgentReport::Hello { hello, session: session.clone() }) {
            return;
        }
        let Cipher { sealer, opener } = self.cipher;
        let mut left = false;
        // Whichever ends first ends the connection.
        let reason = tokio::select! {
            error = read_all(self.reader, opener, &session, shared, &mut left) => error,
            error = write_all(self.writer, sealer, waiting) => error,
        };
        if !left {
            tracing::info!("the connection of the agent on {node} ended: {reason}");
        }
        (shared.report)(AgentReport::Closed { session, left });
    }
}

async fn write_all(mut writer: OwnedWriteHalf, mut sealer: Encryptor, mut waiting: mpsc::UnboundedReceiver<ToAgent>) -> io::Error {
    while let Some(message) = waiting.recv().await {
        let is_last = matches!(message, ToAgent::Refused { .. } | ToAgent::Wait { .. });
        let frames = match sealer.seal(&message) {
            Ok(frames) => frames,
            Err(error) => return io::Error::other(error),
        };
        match timeout(WRITE, writer.write_all(&frames)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error,
            Err(_) => return io::Error::new(io::ErrorKind::TimedOut, "the agent takes no messages"),
        }
        if is_last {
            let _ = writer.shutdown().await;
            return io::Error::other("the agent was refused");
        }
    }
    io::Error::other("the manager closed it")
}

async fn read_all(mut reader: OwnedReadHalf, mut opener: Decryptor, session: &Session, shared: &Shared, left: &mut bool) -> io::Error {
    loop {
        let content = match read_frame(&mut reader).await {
            Ok(content) => content,
            Err(error) => return error,
        };
        match opener.open(&content) {
            Ok(None) => {}
            Ok(Some(message)) => {
                *left |= matches!(message, FromAgent::Leaving);
                if !take(message, session, shared) {
                    return io::Error::other("the manager ends");
                }
            }
            Err(error) => return io::Error::other(error),
        }
    }
}

/// Takes a message. False when the engine is gone.
fn take(message: FromAgent, session: &Session, shared: &Shared) -> bool {
    // Nothing counts before the agent is welcome.
    let Some(server) = session.server() else { return true };
    let report = match message {
        FromAgent::Beat(number) => {
            session.answer(number);
            return true;
        }
        FromAgent::Report(report) => {
            shared.executor.reported(server, session, report);
            return true;
        }
        FromAgent::Note(note) => {
            shared.executor.noted(server, note);
            return true;
        }
        FromAgent::Terminal(message) => {
            tokio::task::block_in_place(|| shared.executor.terminal(server, message));
            return true;
        }
        FromAgent::Estimated(answer) => {
            shared.executor.estimates().answered(server, session, answer);
            return true;
        }
        FromAgent::Log(piece) => {
            tokio::task::block_in_place(|| shared.executor.log_grew(server, &piece));
            return true;
        }
        FromAgent::Hello(_) | FromAgent::Leaving => return true,
        FromAgent::Samples(samples) => AgentReport::Samples(session.clone(), samples),
        FromAgent::GpuEvent(event) => AgentReport::GpuEvent(session.clone(), event),
        FromAgent::Host(reading) => AgentReport::Host(session.clone(), reading),
        FromAgent::Draining { left, ends_now, reason } => AgentReport::Draining { session: session.clone(), left, ends_now, reason },
    };
    (shared.report)(report)
}

async fn read_frame(reader: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let mut content = vec![0; reader.read_u16().await?.into()];
    reader.read_exact(&mut content).await?;
    Ok(content)
}

/// Logs a warning at most once in ten seconds: unauthenticated clients can cause them.
pub(super) fn warn_rarely(text: &str) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|last| last.elapsed() > Duration::from_secs(10)) {
        *last = Some(Instant::now());
        tracing::warn!("{text}");
    }
}
