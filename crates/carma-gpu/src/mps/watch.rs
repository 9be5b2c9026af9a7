//! Notices that an MPS server died.

use super::health::{Health, Server};
use crate::liveness::Process;

/// A server died, or turned faulty, without an order to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDied {
    /// Its process.
    pub pid: u32,
    /// Its clients at the last check. Their jobs are not to blame: `Verdict::MpsServerDied`.
    pub clients: Vec<u32>,
}

/// Watches the server of one daemon. [`Watch::check`] costs one system call; call [`Watch::observe`] after each health query.
#[derive(Debug, Default)]
pub struct Watch(Option<Watched>);

#[derive(Debug)]
struct Watched {
    process: Process,
    clients: Vec<u32>,
    expected: Expected,
}

/// The expected state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// It serves: if it ends, it died.
    Serves,
    /// It failed its clients, and this was reported; it may serve again.
    Failed,
}

impl Watch {
    /// Reports the death of the previous server, and continues with the present one.
    pub fn observe(&mut self, health: &Health) -> Option<ServerDied> {
        let died = self.check();
        match health {
            Health::Serving(server) => self.see(server),
            Health::Faulty(server) => {
                self.see(server);
                return died.or_else(|| self.fail());
            }
            Health::NotRunning | Health::Idle | Health::Unresponsive => {}
        }
        died
    }

    /// Reports the death of the server once.
    pub fn check(&mut self) -> Option<ServerDied> {
        let watched = self.0.take_if(|watched| watched.process.has_ended())?;
        (watched.expected == Expected::Serves).then(|| ServerDied { pid: watched.process.pid(), clients: watched.clients })
    }

    fn see(&mut self, server: &Server) {
        match &mut self.0 {
            Some(watched) if watched.process.pid() == server.pid => {
                watched.clients.clone_from(&server.clients);
                // A server that failed serves again when all its clients have ended.
                if watched.expected == Expected::Failed && server.state != super::ServerState::Fault {
                    watched.expected = Expected::Serves;
                }
            }
            _ => {
                let process = Process::find(server.pid);
                self.0 = process.map(|process| Watched { process, clients: server.clients.clone(), expected: Expected::Serves });
            }
        }
    }

    fn fail(&mut self) -> Option<ServerDied> {
        let watched = self.0.as_mut().filter(|watched| watched.expected == Expected::Serves)?;
        watched.expected = Expected::Failed;
        Some(ServerDied { pid: watched.process.pid(), clients: watched.clients.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::super::ServerState;
    use super::*;

    /// A process in the role of a server.
    struct Running(Child);

    impl Running {
        fn new() -> Self {
            Self(Command::new("sleep").arg("3600").spawn().unwrap())
        }
        fn server(&self, state: ServerState) -> Server {
            Server { pid: self.0.id(), user: Some(1000), state, clients: vec![7, 8] }
        }
        fn serving(&self) -> Health {
            Health::Serving(self.server(ServerState::Active))
        }
        fn died(&self) -> ServerDied {
            ServerDied { pid: self.0.id(), clients: vec![7, 8] }
        }
        fn kill(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.kill();
        }
    }

    #[test]
    fn the_end_of_a_server_is_reported_once() {
        let (mut watch, mut first, second) = (Watch::default(), Running::new(), Running::new());
        assert_eq!(watch.observe(&first.serving()), None);
        assert_eq!(watch.check(), None);
        first.kill();
        // Even if its successor exists before the next check.
        assert_eq!(watch.observe(&second.serving()), Some(first.died()));
        assert_eq!(watch.check(), None);
    }

    #[test]
    fn a_faulty_server_is_reported_once_and_may_recover() {
        let (mut watch, mut server) = (Watch::default(), Running::new());
        let faulty = Health::Faulty(server.server(ServerState::Fault));
        assert_eq!(watch.observe(&faulty), Some(server.died()));
        assert_eq!(watch.observe(&faulty), None);
        watch.observe(&server.serving());
        assert_eq!(watch.observe(&faulty), Some(server.died()));
        server.kill();
        assert_eq!(watch.check(), None);
        assert!(Process::find(server.0.id()).is_none_or(|process| process.ends_within(Duration::ZERO)));
    }
}
