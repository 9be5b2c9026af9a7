//! The notifier, as the engine sees it: told that something has happened, that wishes have changed, or that somebody wants to try theirs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use super::desk::{Desk, Order};
use super::switched_off;
use super::trials::Reply;
use crate::configuration::NotificationSettings;
use crate::engine::EngineError;
use crate::request::Owner;
use crate::store::{Store, UnixMillis};

/// The notifier, as the engine sees it. Dropped, it ends when what is on its way has arrived, or soon after.
#[derive(Debug)]
pub(crate) struct Notifier {
    /// Unset where nobody is told anything.
    thread: Option<(Sender<Order>, JoinHandle<()>)>,
    /// It will look anyway.
    awake: Arc<AtomicBool>,
}

impl Notifier {
    /// Starts it; messages that are on their way have folders below that of the manager's state.
    pub(crate) fn start(
        program: PathBuf,
        state: PathBuf,
        settings: &NotificationSettings,
        store: &Arc<Store>,
    ) -> Result<Self, EngineError> {
        let awake = Arc::new(AtomicBool::new(false));
        if !settings.enabled {
            return Ok(Self { thread: None, awake });
        }
        let (orders, arriving) = channel();
        let desk = Desk::new(program, state, settings, store, orders.clone(), Arc::clone(&awake))?;
        let thread = thread::Builder::new().name("notifier".to_owned()).spawn(move || desk.run(&arriving))?;
        Ok(Self { thread: Some((orders, thread)), awake })
    }

    /// The engine has begun, with this clock.
    pub(crate) fn begin(&self, clock: impl Fn() -> UnixMillis + Send + 'static) {
        self.order(Order::Begin(Box::new(clock)));
    }

    /// Something has happened, and is written down.
    pub(crate) fn look(&self) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            self.order(Order::Look);
        }
    }

    /// To be called when a user's wishes are written down.
    pub(crate) fn reload(&self) -> impl FnOnce() + Send + 'static {
        let orders = self.thread.as_ref().map(|(orders, _)| orders.clone());
        move || orders.into_iter().for_each(|orders| drop(orders.send(Order::Reload)))
    }

    /// Tells a user something made up by all their ways, and answers what became of it.
    pub(crate) fn try_out(&self, owner: Owner, reply: Reply) {
        match &self.thread {
            Some((orders, _)) => drop(orders.send(Order::Try(owner, reply))),
            None => drop(reply.send(Err(switched_off()))),
        }
    }

    fn order(&self, order: Order) {
        // A thread that broke tells nothing, and the manager goes on.
        if let Some((orders, _)) = &self.thread {
            let _ = orders.send(order);
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some((orders, thread)) = self.thread.take() {
            let _ = orders.send(Order::Stop);
            let _ = thread.join();
        }
    }
}
