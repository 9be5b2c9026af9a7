//! The engine's handle to the notifier's thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use super::notifier::{Command, Notifier};
use super::switched_off;
use super::test_messages::Reply;
use crate::configuration::NotificationConfig;
use crate::request::Owner;
use crate::store::{Reader, Store, UnixMillis};
use crate::supervise::LaunchServer;

/// A handle to the notifier. Dropping it ends the thread, after a short wait for messages in flight.
#[derive(Debug)]
pub(crate) struct NotifierHandle {
    /// Unset where notifications are disabled.
    thread: Option<(Sender<Command>, JoinHandle<()>)>,
    /// A wake-up is on its way to the thread.
    awake: Arc<AtomicBool>,
}

impl NotifierHandle {
    /// Starts the thread. Messages in flight have folders below the manager's state.
    pub(crate) fn start(
        programs: (PathBuf, Arc<LaunchServer>),
        state: PathBuf,
        settings: &NotificationConfig,
        store: &Arc<Store>,
        reader: Reader,
    ) -> io::Result<Self> {
        let awake = Arc::new(AtomicBool::new(false));
        if !settings.enabled {
            return Ok(Self { thread: None, awake });
        }
        let (commands, arriving) = channel();
        let notifier = Notifier::new(programs, state, settings, (Arc::clone(store), reader), commands.clone(), Arc::clone(&awake));
        let thread = thread::Builder::new().name("notifier".to_owned()).spawn(move || notifier.run(&arriving))?;
        Ok(Self { thread: Some((commands, thread)), awake })
    }

    /// The engine has started, with this clock.
    pub(crate) fn begin(&self, clock: impl Fn() -> UnixMillis + Send + 'static) {
        self.command(Command::Begin(Box::new(clock)));
    }

    /// New events are committed.
    pub(crate) fn new_events(&self) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            self.command(Command::NewEvents);
        }
    }

    /// Returns what to call once a user's changed notifications are committed.
    pub(crate) fn reload(&self) -> impl FnOnce() + Send + 'static {
        let commands = self.thread.as_ref().map(|(commands, _)| commands.clone());
        move || commands.into_iter().for_each(|commands| drop(commands.send(Command::Reload)))
    }

    /// Sends a test message over all channels of a user, and replies with the results.
    pub(crate) fn send_test(&self, owner: Owner, reply: Reply) {
        match &self.thread {
            Some((commands, _)) => drop(commands.send(Command::Test(owner, reply))),
            None => drop(reply.send(Err(switched_off()))),
        }
    }

    fn command(&self, command: Command) {
        // Without the thread no user is notified, and the manager continues.
        if let Some((commands, _)) = &self.thread {
            let _ = commands.send(command);
        }
    }
}

impl Drop for NotifierHandle {
    fn drop(&mut self) {
        if let Some((commands, thread)) = self.thread.take() {
            let _ = commands.send(Command::Stop);
            let _ = thread.join();
        }
    }
}
