//! Messages between the daemon and its peers: a line of JSON each.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::provision::Provision;

/// To the daemon, which gets the sender from the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A command of the control program.
    Command(String),
    /// To become a client.
    Connect,
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// To a command: the printed text.
    Answer(String),
    /// To a client: its request was received.
    Received,
    /// To a client: it is served while it stays connected.
    Served {
        /// The server's process.
        server: u32,
        /// Its limits on the server.
        provision: Provision,
    },
    /// To a client: it is not served, with CUDA's number of the error.
    Refused(u32),
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection(BufReader<UnixStream>);

impl Connection {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// The socket itself.
    pub(crate) fn stream(&self) -> &UnixStream {
        self.0.get_ref()
    }

    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        self.0.get_mut().write_all(line.as_bytes())
    }

    /// The next message; none when the other end is closed.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 { Ok(None) } else { Ok(Some(serde_json::from_str(&line)?)) }
    }
}
