//! How processes share a device, and the limits a launch carries for it.

use serde::{Deserialize, Serialize};

use crate::units::MiB;
use crate::{MigInstance, choice};

choice! {
    /// A way of sharing a GPU that it can be switched to.
    SharingMode {
        /// Time slices between plain processes.
        Streams = "streams",
        /// An MPS server.
        Mps = "mps",
        /// MIG instances.
        Mig = "mig",
    }
}

/// The collocation mode a job requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestedMode {
    /// Whatever the GPU offers.
    #[default]
    Auto,
    /// A plain process.
    Streams,
    /// A client of an MPS server.
    Mps,
    /// A MIG instance.
    Mig,
}

impl RequestedMode {
    /// The sharing mode it means; none where any will do.
    pub const fn sharing(self) -> Option<SharingMode> {
        match self {
            Self::Auto => None,
            Self::Streams => Some(SharingMode::Streams),
            Self::Mps => Some(SharingMode::Mps),
            Self::Mig => Some(SharingMode::Mig),
        }
    }
}

/// How a device is shared. A property of the device: all that run on it share it this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limits {
    /// A plain process without limits.
    Streams,
    /// A plain process that the driver limits: what is reserved is guaranteed, more is borrowed.
    Driver {
        /// Most memory it may take.
        memory: MiB,
    },
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
