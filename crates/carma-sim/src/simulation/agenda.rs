//! Queue of future events, ordered by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use carma_core::Time;

/// A future event. Outdated events stay in the queue and are recognised by their plan number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// A process reaches its GPUs.
    Arrive { process: usize, plan: u64 },
    /// A process requests more memory.
    Grow { process: usize, plan: u64 },
    /// A process begins to train.
    Train { process: usize, plan: u64 },
    /// A process prints its progress.
    Tell { process: usize, plan: u64 },
    /// A process has finished training.
    WindDown { process: usize, plan: u64 },
    /// A process exits.
    End { process: usize, plan: u64 },
    /// A process has written its checkpoint.
    Saved { process: usize, plan: u64 },
    /// A process that got the signal to stop has exited.
    Gone { process: usize, plan: u64 },
    /// A full window has passed since a GPU last changed.
    Settle { gpu: usize },
    /// A disturbance begins or ends.
    Disturb { place: usize, begins: bool },
    /// A GPU has finished switching its mode.
    Switched { place: usize },
}

/// Items by time; items of the same time in the order of planning.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    items: BinaryHeap<Reverse<(Time, u64, Item)>>,
    planned: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: Time, item: Item) {
        self.planned += 1;
        self.items.push(Reverse((at, self.planned, item)));
    }

    /// The time of the next item.
    pub(super) fn next(&self) -> Option<Time> {
        self.items.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next item if it is due.
    pub(super) fn due(&mut self, now: Time) -> Option<Item> {
        if self.next()? > now {
            return None;
        }
        self.items.pop().map(|Reverse((_, _, item))| item)
    }
}
