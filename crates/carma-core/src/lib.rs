//! The decision core of CARMA, a collocation-aware resource manager for servers with GPUs.
//!
//! Events go in, actions come out: [`Scheduler::handle`]. The core has no clock, no I/O, no threads and no randomness of
//! its own, so that a manager, an emulator and a simulator can drive the very same code, and a recorded event log
//! replays to the same schedule.
//!
//! Data flows one way: [`Event`] → the [`Fleet`]'s devices and the queues → admission ([`Obstacle`]) and [`Mapping`] → [`Action`].
//!
//! A module uses only modules on lines above its own, or to its left; `tools/check-cycles` checks that there is no cycle.
//!
//! ```text
//! units, identity
//! keys                                    the table of settings: how keys are declared, read and checked
//! sharing, telemetry, recovery            how a GPU is shared, what is measured, the out-of-memory ladder
//! job, obstacle                           requests and states; why a device does not take a job
//! forecast, risk                          predicted interference; how busy a GPU was
//! tenant, power                           an attempt on a device; what a load draws
//! policy                                  preferences among devices, one file each
//! config                                  the checked rules
//! device                                  one GPU or MIG instance
//! fleet, modes                            all servers with a search index; the best sharing mode
//! fair_share                              GPU time used by users, and GPUs kept for users below their share
//! admission                               may this job go to this device now?
//! mapping, queue                          the search for devices; which job is next, and what is kept for it
//! scheduler                               events in, actions out
//! ```

mod admission;
mod config;
mod device;
mod fair_share;
mod fleet;
mod forecast;
mod identity;
mod job;
mod keys;
mod mapping;
mod modes;
mod obstacle;
mod policy;
mod power;
mod queue;
mod recovery;
mod risk;
mod scheduler;
#[cfg(feature = "schema")]
mod schema;
mod sharing;
mod telemetry;
mod tenant;
mod units;

pub use admission::HeadReservation;
pub use config::*;
pub use device::{Availability, Device, DeviceSpec, Gate, Outlook, Room, Switches};
pub use fleet::{Fleet, Host, Link, Server, ServerSpec, Topology};
pub use forecast::{CoRunners, ForecastConfig, ForecastSettings, InterferenceProfile, speeds};
pub use identity::*;
pub use job::*;
pub use keys::*;
pub use modes::{CurrentGpu, ModeChoice, ModeForecast, Progress, WaitingJob, best_mode, slice_slowdown, thread_share};
pub use obstacle::{Obstacle, PlacementKind, Wording};
pub use policy::{Facts, Mapping, Order, POLICIES, Policy, Prediction, Score, SharingPair, UnknownPolicy, VARIANTS};
pub use power::PowerRange;
pub use recovery::{LadderPosition, OomContext, Rung};
pub use risk::{Bound, Risk, RiskSettings, RiskWeights, Screen, ScreenSettings};
pub use scheduler::*;
#[cfg(feature = "schema")]
pub use schema::keys_schema;
pub use sharing::{CollocationMode, GpuMode, Limits, MigLayout, Part, RequestedMode, SharingMode};
pub use telemetry::{
    Metric, MetricFacts, PerMetric, Sample, Shown, Statistics, Telemetry, Utilisation, UtilisationOverTime, Window, WindowRule,
    WindowSummary, mean, percentile,
};
pub use tenant::{DriverLimits, Growth, Owner, Plateau, ProcessUse, Tenant, TenantMemory, Work};
pub use units::*;
