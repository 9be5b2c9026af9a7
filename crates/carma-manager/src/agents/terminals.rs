//! Terminals of jobs on other servers: the manager relays their bytes over the connection of the agent.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use carma_core::{AttemptId, ServerId};

use super::session::Session;
use crate::link::{TerminalEvent, TerminalMessage, ToAgent};

/// A client that takes nothing for this long loses its terminal: others use the same connection.
const WRITE: Duration = Duration::from_secs(2);

/// The open terminals of all agents.
#[derive(Debug, Default)]
pub(super) struct Terminals(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: HashMap<u64, (ServerId, UnixStream)>,
}

impl Terminals {
    /// Connects to the terminal of an attempt.
    pub(super) fn open(&self, server: ServerId, attempt: AttemptId, session: &Session) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_write_timeout(Some(WRITE))?;
        let mut typed = ours.try_clone()?;
        let id = {
            let mut open = self.lock();
            open.next += 1;
            let id = open.next;
            open.streams.insert(id, (server, ours));
            id
        };
        let send = move |session: &Session, event| session.send(ToAgent::Terminal(TerminalMessage { id, event }));
        send(session, TerminalEvent::Open(attempt));
        let (session, open) = (session.clone(), Arc::clone(&self.0));
        let relay = move || {
            let mut bytes = [0; 16 << 10];
            while let Ok(length @ 1..) = typed.read(&mut bytes) {
                send(&session, TerminalEvent::Bytes(bytes[..length].to_vec()));
            }
            open.lock().unwrap_or_else(PoisonError::into_inner).streams.remove(&id);
            send(&session, TerminalEvent::Closed);
        };
        thread::Builder::new().name("terminal".to_owned()).spawn(relay)?;
        Ok(theirs)
    }

    /// A message of an agent. Blocks for a moment if the client is slow.
    pub(super) fn received(&self, server: ServerId, message: TerminalMessage) {
        let stream = self.lock().streams.get(&message.id).filter(|(owner, _)| *owner == server).map(|(_, stream)| stream.try_clone());
        let Some(Ok(mut stream)) = stream else { return };
        let goes_on = match message.event {
            TerminalEvent::Bytes(bytes) => stream.write_all(&bytes).is_ok(),
            TerminalEvent::Open(_) | TerminalEvent::Closed => false,
        };
        if !goes_on {
            // The relaying thread ends too.
            let _ = stream.shutdown(Shutdown::Both);
            self.lock().streams.remove(&message.id);
        }
    }

    /// The connection of a server is closed.
    pub(super) fn disconnected(&self, server: ServerId) {
        self.lock().streams.retain(|_, (owner, stream)| {
            let stays = *owner != server;
            if !stays {
                let _ = stream.shutdown(Shutdown::Both);
            }
            stays
        });
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
