//! Asks the manager.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use carma_manager::api::{ConfigurationDetail, RecentQuery, Status};
use carma_manager::client::{Address, Client, ClientError};
use carma_manager::places::Places;

use crate::doctor::manager::{Manager, Running};

/// The manager, and what follows from it.
pub(super) struct Found {
    pub(super) manager: Manager,
    /// Its paths, or those of the manager that would be started.
    pub(super) places: Places,
    /// Its process, if it runs on this host.
    pub(super) process: Option<u32>,
    /// What it says it cannot enforce.
    pub(super) not_enforced: Option<Vec<String>>,
    pub(super) in_force: Option<ConfigurationDetail>,
}

pub(super) fn find(state: Option<&Path>) -> Found {
    let expected = state.map_or_else(Places::own, Places::at);
    let connected = match state {
        Some(_) => Client::at(Address::Socket(expected.socket.clone())),
        None => Client::connect(None),
    };
    let absent = |manager| Found { manager, places: expected.clone(), process: None, not_enforced: None, in_force: None };
    let mut client = match connected {
        Ok(client) => client,
        Err(error) => return absent(without(error, &expected, state)),
    };
    match client.status() {
        Ok(status) => with(&mut client, status, expected),
        Err(error) => absent(Manager::Unusable { error: error.to_string() }),
    }
}

fn without(error: ClientError, expected: &Places, state: Option<&Path>) -> Manager {
    let state = state.map(Path::to_owned);
    let left = |path: &Path| path.exists().then(|| path.to_owned());
    match error {
        ClientError::NoManager(sockets) => {
            let left_socket = sockets.iter().find_map(|socket| left(socket));
            Manager::Absent { sockets, left_socket, state }
        }
        // With a state folder, the client tries only its socket.
        ClientError::Unreachable { address: Address::Socket(socket), error } if is_unused(&error) => {
            Manager::Absent { left_socket: left(&expected.socket), sockets: vec![socket], state }
        }
        error => Manager::Unusable { error: error.to_string() },
    }
}

fn is_unused(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    matches!(error.kind(), ConnectionRefused | NotADirectory | NotFound)
}

/// The paths of the manager at a socket: known ones, or all in the folder of the socket.
fn places_of(socket: &Path, expected: Places) -> Places {
    let system = Places::system();
    let beside = || socket.parent().map(Places::at).filter(|places| places.database().exists());
    match socket {
        _ if socket == expected.socket => expected,
        _ if socket == system.socket => system,
        _ => beside().unwrap_or(expected),
    }
}

fn with(client: &mut Client, status: Status, expected: Places) -> Found {
    let places = match client.address() {
        Address::Socket(socket) => places_of(socket, expected),
        _ => expected,
    };
    let local = matches!(client.address(), Address::Socket(_));
    let began = Instant::now();
    let (gpus, answer) = match client.gpus() {
        Ok(gpus) => (gpus, Ok(began.elapsed())),
        Err(error) => (Vec::new(), Err(error.to_string())),
    };
    let Status { version, pid, up, observes, draining, problems, not_enforced, now, speed, .. } = status;
    let newest = client.recent(&RecentQuery { points: Some(1), ..RecentQuery::default() }).ok();
    let newest = newest.and_then(|samples| samples.iter().filter_map(|samples| samples.at.last().copied()).max());
    // On emulated GPUs, the manager's time runs faster.
    let sample_age = newest.map(|at| Duration::from_secs_f64(now.0.saturating_sub(at.0) as f64 / 1000.0 / speed.max(1.0)));
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok().filter(|_| local);
    let program_replaced = program.is_some_and(|program| program.to_string_lossy().ends_with(" (deleted)"));
    let address = client.address().to_string();
    let up = Duration::from_secs_f64(up.get());
    let running = Running { address, version, pid, up, answer, sample_age, program_replaced, observes, draining, problems, gpus };
    Found {
        manager: Manager::Runs(running),
        places,
        process: local.then_some(pid),
        not_enforced: local.then_some(not_enforced),
        in_force: client.configuration().ok().filter(|_| local),
    }
}
