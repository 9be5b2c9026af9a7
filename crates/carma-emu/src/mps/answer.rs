//! The daemon's answers to commands, in the words of NVIDIA's daemon of driver 535: it reports errors like answers.

use std::fmt::Write;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, iter};

use rustix::process::{Pid, Signal, kill_process};

use super::CLIENT_TERMINATED;
use super::command::Command;
use super::daemon::Daemon;
use super::provision::{Provision, printed};
use super::roster::{Roster, Server, Step};

impl Daemon {
    /// Runs a command of this user, and returns the printed text.
    pub(super) fn answer(self: &Arc<Self>, line: &str, user: u32) -> String {
        match Command::parse(line) {
            Err(word) => format!("Unknown command \"{word}\"\n"),
            Ok(command) if command.ends_something() && user != 0 && user != self.owner.as_raw() => match command {
                Command::Quit { .. } => "Not enough privilege to execute quit command\n".to_owned(),
                _ => format!("Insufficient privileges for UID {user}\n"),
            },
            Ok(command) => self.carry_out(&command, user).unwrap_or_else(|refusal| refusal),
        }
    }

    /// The answer to a command; the error is the text of a refusal.
    fn carry_out(self: &Arc<Self>, command: &Command, user: u32) -> Result<String, String> {
        let mut shared = self.shared();
        let roster = &mut shared.roster;
        let nothing = Ok(String::new());
        match *command {
            Command::ServerList => Ok(lines(roster.server.iter().map(|server| server.pid))),
            Command::ServerStatus { server } => {
                let ready = server_of(roster, server)?.ready;
                drop(shared);
                let state = if self.is_faulty(server) { "FAULT" } else { "ACTIVE" };
                Ok(format!("{}\n", if ready { state } else { "INITIALIZING" }))
            }
            Command::ClientList { server } => Ok(lines(server_of(roster, server)?.clients.iter().map(|client| client.pid))),
            Command::StartServer { user: None } => Err("A user id (UID) is required to start a new server\n".to_owned()),
            Command::StartServer { user: Some(served) } if user != 0 && user != served => {
                Err(format!("Insufficient privileges for UID {user}\n"))
            }
            Command::StartServer { user: Some(served) } => {
                // It answers before the server runs, and does not report one that cannot start.
                if roster.step(served) == Step::Start {
                    let _ = self.start_server(&mut shared, served);
                }
                nothing
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
                let known = server_of(roster, server).map_err(|text| format!("{text}Server {server} not found!\n1\n"))?;
                let known = known.clients.iter().any(|other| other.pid == client);
                if known && self.terminate(server, client) { Ok("0\n".to_owned()) } else { Err(format!("Invalid process {client}!\n1\n")) }
            }
            Command::Threads { server } => Ok(format!("{:.1}\n", provision(roster, server)?.threads)),
            Command::SetThreads { server, percentage } => {
                let provision = provision(roster, server)?;
                // A wrong value changes nothing, and the answer shows the present one.
                provision.threads = percentage.unwrap_or(provision.threads);
                Ok(format!("{:.1}\n", provision.threads))
            }
            Command::Memory { server, device } => {
                let limit = provision(roster, server)?.memory.get(&device).copied();
                Ok(limit.map_or_else(String::new, |limit| format!("{}\n", printed(limit))))
            }
            Command::SetMemory { server, device, bytes } => {
                let memory = &mut provision(roster, server)?.memory;
                match bytes {
                    Some(bytes) => drop(memory.insert(device, bytes)),
                    None => drop(memory.remove(&device)),
                }
                nothing
            }
            Command::Processes { server: None } if roster.server.is_none() => Err("Server not found\n".to_owned()),
            Command::Processes { server } => {
                if let Some(server) = server {
                    server_of(roster, server).map_err(|text| format!("{text}{text}\n"))?;
                }
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
