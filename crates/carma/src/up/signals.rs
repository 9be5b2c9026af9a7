//! Signals to the manager: TERM and INT stop it, HUP reloads the configuration, USR1 and USR2 do nothing.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::thread;

use anyhow::Result;
use carma_manager::api::{Reloaded, Shutdown};
use carma_manager::configuration::ManagerConfig;
use carma_manager::engine::Handle;
use carma_manager::reload;
use carma_manager::supervise::keep_exits_of_children;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tokio::runtime::{Builder, Runtime};

/// The request of a signal.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Stop,
    Reload,
    /// Slurm and batch scripts send USR1 and USR2; by default they would kill the manager.
    Nothing,
}

impl Request {
    /// A manager in a terminal gets HUP when the terminal is closed: it stops, as other programs do.
    fn of(signal: i32, terminal_closed: bool) -> Self {
        match signal {
            SIGHUP if !terminal_closed => Self::Reload,
            SIGUSR1 | SIGUSR2 => Self::Nothing,
            _ => Self::Stop,
        }
    }
}

/// Catches signals from now on: none ends the program while it starts.
pub(super) fn catch() -> Result<Signals> {
    keep_exits_of_children()?;
    Ok(Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])?)
}

/// Handles signals in a thread until the manager ends.
pub(super) fn handle_signals(mut signals: Signals, handle: Handle, configuration: PathBuf, running: ManagerConfig) -> Result<()> {
    let runtime = runtime()?;
    let in_terminal = stderr().is_terminal();
    let run = move || {
        for signal in signals.forever() {
            match Request::of(signal, in_terminal && !stderr().is_terminal()) {
                Request::Stop => return shut_down(&handle),
                Request::Reload => match runtime.block_on(reload(&handle, configuration.clone(), &running)) {
                    Ok(Reloaded { needs_restart, warnings }) => {
                        for warning in &warnings {
                            tracing::warn!("{warning}");
                        }
                        let restart = format!("; these keys need a restart: {}", needs_restart.join(", "));
                        tracing::info!("configuration reloaded{}", if needs_restart.is_empty() { "" } else { &restart });
                    }
                    Err(problem) => tracing::error!("configuration not reloaded, nothing changed: {problem}"),
                },
                Request::Nothing => {}
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(run)?;
    Ok(())
}

/// Stops the manager. Running jobs continue.
pub(super) fn shut_down(handle: &Handle) {
    if let Ok(runtime) = runtime() {
        let _ = runtime.block_on(handle.shutdown(Shutdown::default()));
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_terminal_makes_hup_stop_the_manager() {
        assert_eq!([SIGTERM, SIGINT].map(|signal| Request::of(signal, false)), [Request::Stop, Request::Stop]);
        assert_eq!([false, true].map(|closed| Request::of(SIGHUP, closed)), [Request::Reload, Request::Stop]);
        assert_eq!([SIGUSR1, SIGUSR2].map(|signal| Request::of(signal, true)), [Request::Nothing, Request::Nothing]);
    }
}
