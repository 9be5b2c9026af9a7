//! The servers and their clients: one server at a time, for one user.

use super::provision::Provision;
use super::{MAX_CLIENTS_REACHED, SERVER_NOT_READY};

/// Most clients of a server, on GPUs from Volta to Hopper.
const MAX_CLIENTS: usize = 48;

/// The state of a daemon.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// For later servers.
    pub(super) defaults: Provision,
    pub(super) server: Option<Server>,
    /// Whether the daemon should end.
    pub(super) quitting: bool,
    /// Servers that ended before they could serve.
    pub(super) failed_starts: u64,
    clients_so_far: u32,
}

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) pid: u32,
    pub(super) user: u32,
    /// Whether it has started up.
    pub(super) ready: bool,
    /// Whether it ends with its last client, and accepts no more.
    pub(super) closing: bool,
    pub(super) provision: Provision,
    pub(super) clients: Vec<Client>,
}

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) pid: u32,
    /// The server's number for it.
    pub(super) id: u32,
}

/// The next step for a process that wants to be a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It can be served.
    Serve,
    /// A server must be started for it.
    Start,
    /// The present server has no clients, and must end first.
    Replace,
    /// Until something changes.
    Wait,
    /// Refuse it with this CUDA error.
    Refuse(u32),
}

impl Roster {
    /// The next step for this user.
    pub(super) fn step(&self, user: u32) -> Step {
        match &self.server {
            _ if self.quitting => Step::Refuse(SERVER_NOT_READY),
            None => Step::Start,
            Some(server) if server.closing || !server.ready => Step::Wait,
            Some(server) if server.user == user && server.clients.len() >= MAX_CLIENTS => Step::Refuse(MAX_CLIENTS_REACHED),
            Some(server) if server.user == user => Step::Serve,
            Some(server) if server.clients.is_empty() => Step::Replace,
            Some(_) => Step::Wait,
        }
    }

    /// A server was started.
    pub(super) fn started(&mut self, pid: u32, user: u32) {
        let provision = self.defaults.clone();
        self.server = Some(Server { pid, user, ready: false, closing: self.quitting, provision, clients: Vec::new() });
    }

    /// A server is gone.
    pub(super) fn ended(&mut self, pid: u32) {
        if let Some(server) = self.server.take_if(|server| server.pid == pid) {
            self.failed_starts += u64::from(!server.ready);
        }
    }

    /// The server of this number.
    pub(super) fn server(&mut self, pid: u32) -> Option<&mut Server> {
        self.server.as_mut().filter(|server| server.pid == pid)
    }

    /// Adds a client; returns the server's process and its limits.
    pub(super) fn join(&mut self, pid: u32) -> Option<(Client, u32, Provision)> {
        let server = self.server.as_mut()?;
        let client = Client { pid, id: self.clients_so_far };
        self.clients_so_far += 1;
        server.clients.push(client);
        Some((client, server.pid, server.provision.clone()))
    }

    /// A client is gone.
    pub(super) fn leave(&mut self, client: Client) {
        if let Some(server) = &mut self.server {
            server.clients.retain(|other| *other != client);
        }
    }

    /// Whether the server should end now.
    pub(super) fn is_over(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.closing && server.clients.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(user: u32) -> Roster {
        let mut roster = Roster::default();
        assert_eq!(roster.step(user), Step::Start);
        roster.started(10, user);
        assert_eq!(roster.step(user), Step::Wait, "it starts up");
        roster.server(10).unwrap().ready = true;
        roster
    }

    #[test]
    fn another_user_waits_until_the_last_client_ends() {
        let mut roster = serving(1000);
        assert_eq!(roster.step(1000), Step::Serve);
        let (client, server, _) = roster.join(77).unwrap();
        assert_eq!((client.pid, server), (77, 10));
        assert_eq!((roster.step(1001), roster.step(1000)), (Step::Wait, Step::Serve));
        roster.leave(client);
        assert_eq!(roster.step(1001), Step::Replace);
        roster.server(10).unwrap().closing = true;
        assert!(roster.is_over());
        assert_eq!([roster.step(1000), roster.step(1001)], [Step::Wait; 2]);
        roster.ended(10);
        assert_eq!(roster.step(1001), Step::Start);
        assert_eq!(roster.failed_starts, 0);
    }

    #[test]
    fn the_number_of_clients_is_limited() {
        let mut roster = serving(1000);
        (0..48).for_each(|pid| drop(roster.join(pid)));
        assert_eq!(roster.step(1000), Step::Refuse(808));
        assert_eq!(roster.step(1001), Step::Wait);
    }

    #[test]
    fn an_ending_daemon_serves_no_clients() {
        let mut roster = serving(1000);
        roster.quitting = true;
        assert_eq!(roster.step(1000), Step::Refuse(807));
    }

    #[test]
    fn limits_apply_to_future_servers() {
        let mut roster = serving(1000);
        roster.defaults.threads = 25.0;
        assert!((roster.join(1).unwrap().2.threads - 100.0).abs() < f64::EPSILON);
        roster.ended(10);
        roster.started(11, 1000);
        assert!((roster.join(1).unwrap().2.threads - 25.0).abs() < f64::EPSILON);
        roster.ended(11);
        assert_eq!(roster.failed_starts, 1, "it never served");
    }
}
