//! How many devices are open, so that no search begins where there are too few.

use crate::device::Device;
use crate::obstacle::PlacementKind;

/// Counts of open devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct OpenDevices {
    idle: usize,
    room: usize,
}

impl OpenDevices {
    pub(super) fn add<'a>(&mut self, devices: impl IntoIterator<Item = &'a Device>) {
        for availability in devices.into_iter().map(Device::availability) {
            self.idle += usize::from(availability.idle.is_some());
            self.room += usize::from(availability.room.is_some());
        }
    }

    pub(super) fn remove<'a>(&mut self, devices: impl IntoIterator<Item = &'a Device>) {
        let mut gone = Self::default();
        gone.add(devices);
        (self.idle, self.room) = (self.idle - gone.idle, self.room - gone.room);
    }

    /// How many are open this way.
    pub(super) const fn count(self, kind: PlacementKind) -> usize {
        match kind {
            PlacementKind::Idle => self.idle,
            PlacementKind::Share => self.room,
        }
    }
}
