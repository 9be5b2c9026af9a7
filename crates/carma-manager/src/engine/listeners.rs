//! Receivers of updates: listening connections, and users with notifications.

use tokio::sync::broadcast;

use super::decide::{Clock, SharedClock};
use crate::api::Update;
use crate::notifications::NotifierHandle;
use crate::store::UnixMillis;

/// All listeners.
pub(crate) struct Listeners {
    updates: broadcast::Sender<(UnixMillis, Update)>,
    /// The clock that other threads read.
    clock: SharedClock,
    pub(crate) notifier: NotifierHandle,
}

impl Listeners {
    pub(crate) fn new(updates: broadcast::Sender<(UnixMillis, Update)>, clock: SharedClock, notifier: NotifierHandle) -> Self {
        Self { updates, clock, notifier }
    }

    /// Sets the clock.
    pub(crate) fn begin(&self, clock: Clock) {
        self.clock.set(clock);
    }

    /// Starts notifications with this clock.
    pub(crate) fn notify(&self, clock: Clock) {
        self.notifier.begin(move || clock.wall());
    }

    /// Sends an update that is on the disk.
    pub(crate) fn publish(&self, at: UnixMillis, update: Update) {
        let _ = self.updates.send((at, update));
        self.notifier.new_events();
    }

    /// GPUs were sampled. Not durable: broadcast without waiting for a commit.
    pub(crate) fn sampled(&self, at: UnixMillis) {
        let _ = self.updates.send((at, Update::Gpus));
    }
}
