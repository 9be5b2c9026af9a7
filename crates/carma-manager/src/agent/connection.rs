//! The agent's side of the connection.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::run::AgentInput;
use crate::link::{Decryptor, Encryptor, FromAgent, Handshake, LinkError, Secret, ToAgent};

/// How long a manager may take to accept a connection or a message.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where a manager is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManagerAddress {
    /// At this address.
    Fixed(String),
    /// As this file says, which a manager writes at its start: a restarted one may be on another host.
    File(PathBuf),
}

/// The content of a manager's address file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddressFile {
    /// To be tried in this order.
    pub(crate) addresses: Vec<String>,
}

impl ManagerAddress {
    /// The addresses to try.
    fn candidates(&self) -> io::Result<Vec<String>> {
        match self {
            Self::Fixed(address) => Ok(vec![address.clone()]),
            Self::File(path) => read_address(path),
        }
    }
}

fn read_address(path: &Path) -> io::Result<Vec<String>> {
    let file: AddressFile = serde_json::from_slice(&fs::read(path)?)?;
    Ok(file.addresses)
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    sealer: Encryptor,
    /// Tells messages of this connection from those of earlier ones.
    pub(super) number: u64,
}

impl Connection {
    /// Connects, and passes what arrives to the inbox.
    pub(super) fn open(manager: &ManagerAddress, secret: &Secret, number: u64, inbox: &Sender<AgentInput>) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the manager has no address");
        for address in manager.candidates()? {
            match Self::open_at(&address, secret, number, inbox.clone()) {
                Ok(connection) => return Ok(connection),
                Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
            }
        }
        Err(last)
    }

    fn open_at(address: &str, secret: &Secret, number: u64, inbox: Sender<AgentInput>) -> io::Result<Self> {
        let mut stream = connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut handshake = Handshake::agent(secret).map_err(other)?;
        stream.write_all(&handshake.write().map_err(other)?)?;
        // A manager with another secret closes the connection.
        let answer = read_frame(&mut stream)?.ok_or_else(|| other(LinkError::Secret))?;
        handshake.read(&answer).map_err(other)?;
        let cipher = handshake.finish().map_err(other)?;
        stream.set_read_timeout(None)?;
        let (mut reader, opener) = (stream.try_clone()?, cipher.opener);
        let read = move || {
            let reason = match pass_on(&mut reader, opener, number, &inbox) {
                Ok(()) => "the manager closed the connection".to_owned(),
                Err(error) => error.to_string(),
            };
            let _ = inbox.send(AgentInput::Disconnected { number, reason });
        };
        thread::Builder::new().name("manager".to_owned()).spawn(read)?;
        Ok(Self { stream, sealer: cipher.sealer, number })
    }

    pub(super) fn send(&mut self, message: &FromAgent) -> io::Result<()> {
        let frames = self.sealer.seal(message).map_err(other)?;
        self.stream.write_all(&frames)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The reading thread ends.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Passes messages on until the connection ends.
fn pass_on(stream: &mut TcpStream, mut opener: Decryptor, number: u64, inbox: &Sender<AgentInput>) -> io::Result<()> {
    while let Some(content) = read_frame(stream)? {
        if let Some(message) = opener.open::<ToAgent>(&content).map_err(other)?
            && inbox.send(AgentInput::Received { number, message }).is_err()
        {
            break;
        }
    }
    Ok(())
}

/// The content of the next frame; none at the end.
fn read_frame(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 2];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut content = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut content)?;
    Ok(Some(content))
}

fn other(error: LinkError) -> io::Error {
    io::Error::other(error)
}
