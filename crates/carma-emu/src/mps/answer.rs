//! The daemon's answers to commands, in MPS's words.

use std::fmt::Write;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, iter};

use rustix::process::{Pid, Signal, kill_process};

use super::CLIENT_TERMINATED;
use super::command::Command;
use super::daemon::Daemon;
use super::provision::{Provision, amount};
use super::roster::{Roster, Server};

impl Daemon {
    /// Runs a command of this user. An error is the printed text of a failed command.
    pub(super) fn answer(self: &Arc<Self>, line: &str, user: u32) -> Result<String, String> {
        let command = Command::parse(line).ok_or_else(|| format!("Invalid command: {line}\n"))?;
        if !command.is_question() && user != 0 && user != self.owner.as_raw() {
            return Err(format!("Permission denied: the daemon belongs to user {}\n", self.owner.as_raw()));
        }
        let mut shared = self.shared();
        let roster = &mut shared.roster;
        let nothing = Ok(String::new());
        match command {
            Command::ServerList => Ok(lines(roster.server.iter().map(|server| server.pid))),
            Command::ServerStatus { server } => {
                let ready = server_of(roster, server)?.ready;
                drop(shared);
                let state = if self.is_faulty(server) { "FAULT" } else { "ACTIVE" };
                Ok(format!("{}\n", if ready { state } else { "INITIALIZING" }))
            }
            Command::ClientList { server } => Ok(lines(server_of(roster, server)?.clients.iter().map(|client| client.pid))),
            Command::StartServer { user } => {
                drop(shared);
                self.server_for(user).map(|_| String::new()).map_err(|code| format!("Failed to start server: error {code}\n"))
            }
            Command::ShutdownServer { server, force } => {
                server_of(roster, server)?;
                if force {
                    kill(server);
                }
                self.close(&mut shared);
                nothing
            }
            Command::TerminateClient { server, client } => {
                let known = server_of(roster, server)?.clients.iter().any(|other| other.pid == client);
                if known && self.terminate(server, client) { nothing } else { Err(format!("Client {client} not found\n")) }
            }
            Command::Threads { server } => Ok(format!("{:.1}\n", provision(roster, server)?.threads)),
            Command::SetThreads { server, percentage } => {
                provision(roster, server)?.threads = percentage;
                Ok(format!("{percentage:.1}\n"))
            }
            Command::Memory { server, device } => {
                let limit = provision(roster, server)?.memory.get(&device).copied();
                Ok(limit.map_or_else(|| "No limit\n".to_owned(), |limit| format!("{}\n", amount(limit))))
            }
            Command::SetMemory { server, device, bytes } => {
                provision(roster, server)?.memory.insert(device, bytes);
                nothing
            }
            Command::Processes { server } => {
                let asked = |other: &&Server| server.is_none_or(|server| server == other.pid);
                Ok(self.processes(roster.server.iter().filter(asked)))
            }
            Command::Quit { seconds } => {
                drop(shared);
                self.quit(seconds);
                nothing
            }
        }
    }

    /// Ends the work of a client on its GPU; returns whether it had any there.
    fn terminate(&self, server: u32, client: u32) -> bool {
        let end = self.machine.with(|state| {
            let contexts = state.contexts_mut().iter_mut();
            let ended = contexts.filter(|context| (context.pid, context.server) == (client, server));
            ended.map(|context| (context.fault, context.busy) = (CLIENT_TERMINATED, 0)).count() > 0
        });
        end.unwrap_or(false)
    }

    /// Accepts no more clients, and waits for the present ones: for this long, if given.
    fn quit(&self, seconds: Option<u64>) {
        let mut shared = self.shared();
        shared.roster.quitting = true;
        self.close(&mut shared);
        let mut until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        while let Some(server) = shared.roster.server.as_ref().map(|server| server.pid) {
            if until.take_if(|until| *until <= Instant::now()).is_some() {
                kill(server);
            }
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            shared = self.changed.wait_timeout(shared, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The table of clients.
    fn processes<'a>(&self, servers: impl Iterator<Item = &'a Server>) -> String {
        let mut table = "PID       ID    SERVER    DEVICE             NAMESPACE    COMMAND\n".to_owned();
        for (server, client) in servers.flat_map(|server| iter::repeat(server.pid).zip(&server.clients)) {
            let device = self.machine.with(|state| {
                let gpu = state.contexts().iter().find(|context| context.pid == client.pid).map(|context| context.gpu as usize);
                gpu.map(|gpu| state.gpus[gpu].uuid.get().chars().take(22).collect::<String>())
            });
            let device = device.ok().flatten().unwrap_or_default();
            let space = fs::read_link(format!("/proc/{}/ns/pid", client.pid)).unwrap_or_default();
            let space: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
            let command = fs::read(format!("/proc/{}/cmdline", client.pid)).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let _ = writeln!(table, "{:<9} {:<5} {server:<9} {device}  {space:<12} {}", client.pid, client.id, command.trim_end());
        }
        table
    }
}

/// The limits of a server, or the defaults for later servers.
fn provision(roster: &mut Roster, server: Option<u32>) -> Result<&mut Provision, String> {
    match server {
        None => Ok(&mut roster.defaults),
        Some(server) => server_of(roster, server).map(|server| &mut server.provision),
    }
}

fn server_of(roster: &mut Roster, pid: u32) -> Result<&mut Server, String> {
    roster.server(pid).ok_or_else(|| format!("Server {pid} not found\n"))
}

/// Kills a server. It is our child, so its pid is not reused until it is reaped.
fn kill(server: u32) {
    if let Some(pid) = server.try_into().ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn lines(numbers: impl Iterator<Item = u32>) -> String {
    numbers.fold(String::new(), |text, number| text + &number.to_string() + "\n")
}
