//! What is going to happen, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use carma_core::Time;

/// Something to come. Plans that were changed are left on the agenda and recognised by their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// A process reaches its GPUs.
    Arrive { process: usize, plan: u64 },
    /// A process asks for more memory.
    Grow { process: usize, plan: u64 },
    /// A process begins to train.
    Train { process: usize, plan: u64 },
    /// A process prints how far it is.
    Tell { process: usize, plan: u64 },
    /// A process has done its training.
    WindDown { process: usize, plan: u64 },
    /// A process is at its end.
    End { process: usize, plan: u64 },
    /// A process has written its checkpoint.
    Saved { process: usize, plan: u64 },
    /// A process that was told to stop is gone.
    Gone { process: usize, plan: u64 },
    /// A whole window has passed since a GPU last changed.
    Settle { gpu: usize },
    /// A disturbance begins, or ends.
    Disturb { place: usize, begins: bool },
    /// A GPU is in another mode.
    Switched { place: usize },
}

/// Items by time; those of one moment in the order they were planned.
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

    /// Takes the next item if its time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<Item> {
        if self.next()? > now {
            return None;
        }
        self.items.pop().map(|Reverse((_, _, item))| item)
    }
}
