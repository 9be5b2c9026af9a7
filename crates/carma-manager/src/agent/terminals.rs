//! Terminals of an agent's jobs, relayed to the manager.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::run::AgentInput;
use crate::link::{FromAgent, TerminalEvent, TerminalMessage};
use crate::supervise::{AttemptFolder, connect_terminal};

/// How long a job may take to start.
const START: Duration = Duration::from_secs(10);
/// A job that reads nothing for this long loses what is typed.
const WRITE: Duration = Duration::from_secs(2);

/// The open terminals.
#[derive(Debug, Default)]
pub(super) struct AgentTerminals(HashMap<u64, Terminal>);

#[derive(Debug)]
enum Terminal {
    /// It is being connected; what is typed meanwhile waits.
    OpenMode(Vec<u8>),
    Open(UnixStream),
}

/// News of a terminal.
#[derive(Debug)]
pub(super) enum TerminalInput {
    Opened(u64, UnixStream),
    Printed(u64, Vec<u8>),
    Closed(u64),
}

impl AgentTerminals {
    /// A message of the manager.
    pub(super) fn received(&mut self, message: TerminalMessage, folder: &Path, inbox: &Sender<AgentInput>) {
        let id = message.id;
        match message.event {
            TerminalEvent::Open(attempt) => {
                self.0.insert(id, Terminal::OpenMode(Vec::new()));
                let (folder, inbox) = (AttemptFolder::of(folder, attempt), inbox.clone());
                let spawned = thread::Builder::new().name("terminal".to_owned()).spawn(move || relay(id, &folder, &inbox));
                if spawned.is_err() {
                    self.0.remove(&id);
                }
            }
            TerminalEvent::Bytes(bytes) => match self.0.get_mut(&id) {
                Some(Terminal::OpenMode(typed)) => typed.extend(bytes),
                Some(Terminal::Open(stream)) => drop(stream.write_all(&bytes)),
                None => {}
            },
            TerminalEvent::Closed => self.close(id),
        }
    }

    /// What a terminal did; the answer for the manager.
    pub(super) fn happened(&mut self, input: TerminalInput) -> Option<FromAgent> {
        let answer = |id, event| Some(FromAgent::Terminal(TerminalMessage { id, event }));
        match input {
            TerminalInput::Opened(id, mut stream) => {
                if let Some(Terminal::OpenMode(typed)) = self.0.get(&id) {
                    let _ = stream.write_all(typed);
                    self.0.insert(id, Terminal::Open(stream));
                }
                None
            }
            TerminalInput::Printed(id, bytes) => self.0.contains_key(&id).then(|| answer(id, TerminalEvent::Bytes(bytes))).flatten(),
            TerminalInput::Closed(id) => {
                self.close(id);
                answer(id, TerminalEvent::Closed)
            }
        }
    }

    /// The connection to the manager is gone, and its clients with it.
    pub(super) fn close_all(&mut self) {
        let ids: Vec<u64> = self.0.keys().copied().collect();
        for id in ids {
            self.close(id);
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(Terminal::Open(stream)) = self.0.remove(&id) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Connects to a terminal. A client may be here before the order to start its job.
fn connect(folder: &AttemptFolder) -> Option<UnixStream> {
    let until = Instant::now() + START;
    loop {
        match connect_terminal(folder) {
            Ok(stream) => return Some(stream),
            Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(50)),
            Err(_) => return None,
        }
    }
}

/// Connects to the terminal of an attempt, and passes on what it prints.
fn relay(id: u64, folder: &AttemptFolder, inbox: &Sender<AgentInput>) {
    let send = |input| inbox.send(AgentInput::Terminal(input)).is_ok();
    if let Some(mut stream) = connect(folder)
        && stream.set_write_timeout(Some(WRITE)).is_ok()
        && let Ok(copy) = stream.try_clone()
        && send(TerminalInput::Opened(id, copy))
    {
        let mut bytes = [0; 16 << 10];
        while let Ok(length @ 1..) = stream.read(&mut bytes) {
            if !send(TerminalInput::Printed(id, bytes[..length].to_vec())) {
                return;
            }
        }
    }
    send(TerminalInput::Closed(id));
}
