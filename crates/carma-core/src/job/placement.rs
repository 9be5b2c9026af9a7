//! Where an attempt runs, and the memory reserved there.

use serde::{Deserialize, Serialize};

use crate::sharing::Limits;
use crate::units::MiB;
use crate::{DeviceId, ServerId};

/// The devices of an attempt, one a rank, in rank order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Placement {
    /// The server of rank 0, where the attempt is launched.
    pub server: ServerId,
    /// The devices; none for a job that wants no GPU.
    pub devices: Vec<Granted>,
}

/// One device of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Granted {
    /// Which.
    pub device: DeviceId,
    /// Memory reserved there.
    #[serde(alias = "promised")]
    pub reserved: MiB,
    /// What the attempt is limited to there.
    pub limits: Limits,
}
