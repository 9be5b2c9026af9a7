//! The steps from one partition of a GPU to another.

use std::fmt;

use serde::Serialize;

use super::profile::ProfileName;
use super::{Instance, Mode, Placement};

/// A part of a GPU for a present or a new instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its kind.
    pub profile: ProfileName,
    /// The driver's number of its kind.
    pub profile_id: u32,
    /// Its placement.
    pub placement: Placement,
}

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Switch MIG on or off.
    Switch(Mode),
    /// Destroy the GPU instance of this number, with its compute instances.
    Destroy(u32, Part),
    /// Create a GPU instance, with a compute instance that spans it.
    Create(Part),
}

/// The way from one layout to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Instances that stay, with their processes.
    pub kept: Vec<Instance>,
    /// The steps in order.
    pub steps: Vec<Step>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.profile, self.placement)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(mode) => write!(f, "switch MIG {}", if *mode == Mode::On { "on" } else { "off" }),
            Self::Destroy(number, part) => write!(f, "destroy instance {number}: {part}"),
            Self::Create(part) => write!(f, "create {part}"),
        }
    }
}
