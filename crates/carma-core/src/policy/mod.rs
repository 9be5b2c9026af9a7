//! Mapping policies: in which order they prefer devices, and when they refuse one.
//!
//! A policy is data and pure functions; adding one means one file here and one line in [`POLICIES`].

mod best_fit;
mod carma;
mod exclusive;
mod first_fit;
mod horus;
mod least_utilised;
mod lucid;
mod most_memory;
mod round_robin;

pub(crate) use carma::POLICY as CARMA;
pub(crate) use most_memory::POLICY as MAGM;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::forecast::{ForecastConfig, InterferenceProfile};
use crate::job::{JobSpec, MemoryBasis};
use crate::obstacle::Obstacle;
use crate::risk::Risk;
use crate::sharing::CollocationMode;
use crate::tenant::Tenant;
use crate::units::{MiB, Seconds, Time};

/// A way to choose among devices.
#[derive(Debug)]
pub struct Policy {
    /// Its name in configurations and tables.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// It puts several jobs on one device.
    pub shares: bool,
    /// The utilisation screen applies to it.
    pub screened: bool,
    /// Jobs of unknown need must find the floor free.
    pub floor: bool,
    /// Its order of preference among devices.
    pub order: Order,
    /// Its own objection to a job joining these tenants.
    pub objects: fn(&JobSpec, &[Tenant]) -> Option<Obstacle>,
}

/// Every policy.
pub static POLICIES: [&Policy; 9] = [
    &carma::POLICY,
    &exclusive::POLICY,
    &round_robin::POLICY,
    &first_fit::POLICY,
    &best_fit::POLICY,
    &most_memory::POLICY,
    &least_utilised::POLICY,
    &horus::POLICY,
    &lucid::POLICY,
];

/// What may stand before a policy's name, and what it changes.
pub static VARIANTS: [(&str, &str); 2] = [
    ("est-", "goes by estimates even where a need is declared"),
    ("or-", "requires the configured floor of free memory whatever the job, and relies on recovery"),
];

/// An order of preference.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// As the devices stand.
    Position,
    /// As they stand, from the one after the last that was used.
    Ring,
    /// The least score first, then as they stand.
    Least(fn(&Facts<'_>) -> Score),
    /// The least score first, which is the job's own; or why it must not come.
    Predicted(Prediction),
}

/// A policy's own prediction of a job beside those on a device.
#[derive(Debug, Clone, Copy)]
pub struct Prediction {
    /// The score of this job there, or why it must not come.
    pub of: fn(&SharingPair<'_>) -> Result<Score, Obstacle>,
    /// No job has a lower score there.
    pub least: fn(&Facts<'_>) -> Score,
}

/// A job, and a device that it might share.
#[derive(Debug, Clone, Copy)]
pub struct SharingPair<'a> {
    /// What is expected of the job.
    pub newcomer: InterferenceProfile,
    /// How the device is shared.
    pub mode: CollocationMode,
    /// Our attempts on it.
    pub tenants: &'a [Tenant],
    /// How far predictions may go.
    pub limits: ForecastConfig,
    /// How long the job should take alone from now on.
    pub length: Seconds,
    /// When it would start.
    pub now: Time,
    /// Waiting jobs per GPU.
    pub pressure: f64,
}

impl Policy {
    /// Whether it goes by what is predicted of jobs that share.
    pub const fn predicts(&self) -> bool {
        matches!(self.order, Order::Predicted(_))
    }
}

impl Order {
    pub(crate) fn score(&self, facts: &Facts<'_>) -> Score {
        match self {
            Self::Position | Self::Ring => Score(0),
            Self::Least(score) => score(facts),
            Self::Predicted(prediction) => (prediction.least)(facts),
        }
    }
}

/// The facts by which a policy ranks a device.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Memory that can be reserved.
    pub available: MiB,
    /// Risk scores.
    pub risk: &'a Risk,
    /// Our attempts on it.
    pub tenants: &'a [Tenant],
}

/// A place in an order of preference; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(pub u64);

fn never(_: &JobSpec, _: &[Tenant]) -> Option<Obstacle> {
    None
}

/// A policy and the knowledge of memory it goes by: `magm`, `est-magm`, `or-magm`.
///
/// ```
/// use carma_core::{Mapping, MemoryBasis};
/// let mapping: Mapping = "OR-MAGM".parse().unwrap();
/// assert_eq!((mapping.policy.name, mapping.basis), ("magm", MemoryBasis::Floor));
/// assert_eq!(mapping.to_string(), "or-magm");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// The policy.
    pub policy: &'static Policy,
    /// Which knowledge of memory it uses.
    pub basis: MemoryBasis,
}

impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        self.policy.name == other.policy.name && self.basis == other.basis
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.basis {
            MemoryBasis::Known => "",
            MemoryBasis::Estimate => "est-",
            MemoryBasis::Floor => "or-",
        };
        write!(f, "{prefix}{}", self.policy.name)
    }
}

/// A name that no policy has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown policy {0:?}")]
pub struct UnknownPolicy(String);

impl FromStr for Mapping {
    type Err = UnknownPolicy;
    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let lower = name.to_lowercase();
        let prefixes = [("oracle-", MemoryBasis::Known), ("est-", MemoryBasis::Estimate), ("or-", MemoryBasis::Floor)];
        let split = prefixes.iter().find_map(|(prefix, basis)| Some((lower.strip_prefix(prefix)?, *basis)));
        let (plain, basis) = split.unwrap_or((&lower, MemoryBasis::Known));
        let policy = POLICIES.iter().find(|policy| policy.name == plain);
        policy.map(|policy| Self { policy, basis }).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}
