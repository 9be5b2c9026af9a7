//! How an MPS daemon and its server are.

use thiserror::Error;

use super::answers::ServerState;
use super::control::MpsControl;
use super::error::MpsError;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its process.
    pub pid: u32,
    /// Whose clients it serves; unset where it ended while we looked.
    pub user: Option<u32>,
    /// What it says of itself.
    pub state: ServerState,
    /// Its clients' processes.
    pub clients: Vec<u32>,
}

/// How the daemon of a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// There is none.
    NotRunning,
    /// It waits for its first client.
    Idle,
    /// Its server serves.
    Serving(Server),
    /// Its server serves nobody until all its clients have ended.
    Faulty(Server),
    /// It does not answer.
    Unresponsive,
}

/// MPS serves one user at a time, and this is not the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the MPS server has clients of user {user}, and serves one user at a time")]
pub struct OtherUser {
    /// The user it serves now.
    pub user: u32,
}

impl Health {
    /// Whether a client of this user would be served at once as far as other users go. A server without clients gives way.
    pub fn admits(&self, newcomer: u32) -> Result<(), OtherUser> {
        match self {
            Self::Serving(server) | Self::Faulty(server) if !server.clients.is_empty() => match server.user {
                Some(user) if user != newcomer => Err(OtherUser { user }),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Of the servers a daemon has: one, or for a moment two, of which one is about to end.
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
    /// How the daemon and its server are. It runs the control program a few times, so it is for now and then; see [`super::Watch`].
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
    fn one_users_clients_only() {
        let serving = Health::of(vec![server(1000, ServerState::Active, &[9741])]);
        assert_eq!(serving.admits(1000), Ok(()));
        assert_eq!(serving.admits(1001), Err(OtherUser { user: 1000 }));
        assert_eq!(OtherUser { user: 1000 }.to_string(), "the MPS server has clients of user 1000, and serves one user at a time");
        // Without clients it gives way.
        assert_eq!(Health::of(vec![server(1000, ServerState::Active, &[])]).admits(1001), Ok(()));
        assert_eq!(Health::Idle.admits(1001), Ok(()));
    }

    #[test]
    fn a_fault_shows_before_anything_else() {
        let (well, ill) = (server(1000, ServerState::Active, &[1, 2]), server(1000, ServerState::Fault, &[3]));
        assert_eq!(Health::of(vec![ill.clone(), well.clone()]), Health::Faulty(ill));
        assert_eq!(Health::of(vec![well.clone(), server(1001, ServerState::Initializing, &[])]), Health::Serving(well));
        assert_eq!(Health::of(Vec::new()), Health::Idle);
    }
}
