//! How processes share a device, and the limits a launch carries for it.

use serde::{Deserialize, Serialize};

use crate::MigInstance;
use crate::config::{ModeConfig, SharingMode};
use crate::modes::GpuMode;
use crate::units::{MiB, Seconds, Time};

/// How a device is shared. A property of the device: all that run on it share it this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollocationMode {
    /// Time-slicing between plain processes.
    Streams,
    /// An MPS server, one user's clients at a time.
    Mps {
        /// The compute mode is `EXCLUSIVE_PROCESS`: only the MPS server may open the device, plain processes may not.
        exclusive_process: bool,
    },
    /// The device is a MIG instance.
    Mig,
}

/// What a launch on one device is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limits {
    /// A plain process: nothing can be enforced.
    Streams,
    /// A client of the device's MPS server.
    Mps {
        /// Share of the SMs in percent; unset: all.
        active_threads: Option<u8>,
        /// Most memory it may take; unset: no limit.
        memory: Option<MiB>,
    },
    /// All of a MIG instance.
    Mig {
        /// Which.
        instance: MigInstance,
    },
}

/// What becomes of how a device is shared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    /// It is being switched to this, and takes nobody meanwhile.
    pub to: Option<GpuMode>,
    /// When its mode last changed.
    pub changed_at: Option<Time>,
    /// What it cannot be switched to; asked for again only under other rules.
    pub refused: Vec<SharingMode>,
}

impl Switches {
    /// Whether the last change is long enough ago.
    pub(crate) fn have_rested(&self, every: Seconds, now: Time) -> bool {
        self.changed_at.is_none_or(|changed| now - changed >= every)
    }

    /// Whether a GPU may be made whole again.
    pub(crate) fn may_join(&self, modes: &ModeConfig) -> bool {
        [SharingMode::Streams, SharingMode::Mps].iter().any(|mode| modes.allows(*mode) && !self.refused.contains(mode))
    }
}
