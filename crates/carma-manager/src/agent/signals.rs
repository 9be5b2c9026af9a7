//! Signals to the agent: its batch system announces the end with USR1, and asks for it with TERM.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::run::AgentInput;

/// Passes signals to the inbox.
pub(super) fn watch(inbox: Sender<AgentInput>) -> io::Result<()> {
    let mut signals = Signals::new([SIGUSR1, SIGTERM, SIGINT, SIGHUP])?;
    let run = move || {
        for signal in signals.forever() {
            let input = match signal {
                SIGUSR1 => AgentInput::EndAnnounced,
                SIGHUP => continue,
                _ => AgentInput::EndRequested,
            };
            if inbox.send(input).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(run).map(drop)
}
