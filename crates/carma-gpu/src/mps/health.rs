//! The state of an MPS daemon and its server.

use super::answers::ServerState;
use super::control::MpsControl;
use super::error::MpsError;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its process.
    pub pid: u32,
    /// The user of its clients; unset if it ended during the check.
    pub user: Option<u32>,
    /// The state it reports.
    pub state: ServerState,
    /// Its clients' processes.
    pub clients: Vec<u32>,
}

/// The state of a GPU's daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// There is no daemon.
    NotRunning,
    /// It waits for its first client.
    Idle,
    /// Its server serves.
    Serving(Server),
    /// Its server accepts no client until all its clients have ended.
    Faulty(Server),
    /// It does not answer.
    Unresponsive,
}

impl Health {
    /// From the servers of a daemon: one, or briefly two, while one of them ends.
    fn of(servers: Vec<Server>) -> Self {
        let rank = |server: &Server| (server.state == ServerState::Fault, server.clients.len());
        match servers.into_iter().max_by_key(rank) {
            None => Self::Idle,
            Some(server) if server.state == ServerState::Fault => Self::Faulty(server),
            Some(server) => Self::Serving(server),
        }
    }
}

impl MpsControl {
    /// The state of the daemon and its server. It runs the control program a few times, so do not call it often; see [`super::Watch`].
    pub fn health(&self) -> Result<Health, MpsError> {
        match self.servers() {
            Ok(servers) => Ok(Health::of(servers)),
            Err(MpsError::NotRunning(_)) => Ok(Health::NotRunning),
            Err(MpsError::Unresponsive { .. }) => Ok(Health::Unresponsive),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(user: u32, state: ServerState, clients: &[u32]) -> Server {
        Server { pid: 6472, user: Some(user), state, clients: clients.to_vec() }
    }

    #[test]
    fn a_fault_has_priority() {
        let (well, ill) = (server(1000, ServerState::Active, &[1, 2]), server(1000, ServerState::Fault, &[3]));
        assert_eq!(Health::of(vec![ill.clone(), well.clone()]), Health::Faulty(ill));
        assert_eq!(Health::of(vec![well.clone(), server(1001, ServerState::Initializing, &[])]), Health::Serving(well));
        assert_eq!(Health::of(Vec::new()), Health::Idle);
    }
}
