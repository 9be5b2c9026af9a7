//! The decision core of CARMA, a collocation-aware resource manager for servers with GPUs.
//!
//! Events go in, actions come out: [`Scheduler::handle`]. The core has no clock, no I/O, no threads and no randomness of
//! its own, so that a manager, an emulator and a simulator can drive the very same code, and a recorded event log
//! replays to the same schedule.
//!
//! Data flows one way: [`Event`] → the [`Fleet`]'s devices and the queues → [`admission`](Obstacle) and [`Mapping`] → [`Action`].

mod admission;
mod config;
mod device;
mod fleet;
mod forecast;
mod identity;
mod job;
mod mapping;
mod modes;
mod power;
mod queue;
mod recovery;
mod risk;
mod scheduler;
mod telemetry;
mod units;

pub use admission::{Obstacle, Way};
pub use config::*;
pub use device::{
    CollocationMode, Device, DeviceSpec, Gate, Growth, Limits, Outlook, Owner, ProcessUse, Room, Standing, Switches, Tenant, TenantMemory,
};
pub use fleet::{Fleet, Host, HostClaim, Server, ServerSpec};
pub use forecast::{Character, Company, Interference, speeds};
pub use identity::*;
pub use job::*;
pub use mapping::{
    Encounter, Facts, Granted, Link, Mapping, Order, POLICIES, Placement, Policy, Prediction, Score, Topology, UnknownPolicy,
};
pub use modes::{GpuAsItIs, GpuMode, MigLayout, ModeChoice, Part, Progress, Prospect, WaitingJob, best_mode, slice_slowdown, thread_share};
pub use power::PowerRange;
pub use queue::{HeadReservation, Turn};
pub use recovery::{Climb, Rung, Setback};
pub use risk::{Bound, Risk, RiskWeights, Screen};
pub use scheduler::*;
pub use telemetry::{Metric, Sample, Statistics, Telemetry, Window, WindowRule, WindowSummary};
pub use units::*;
