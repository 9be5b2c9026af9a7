//! Answers to questions that change nothing.

mod facts;
mod gpus;
mod predictions;
mod queue;
mod servers;
mod status;
mod why;

use carma_core::{Job, Time, Wording};

use super::accounting::Accounting;
use super::attempts::Attempts;
use super::decide::Decisions;
use super::gpus::Gpus;
use super::host::Host;
use super::jobs::Jobs;
use super::pools::Pools;
use super::predictions::Predictions;
use super::servers::RemoteServers;
use super::setup::Setup;
use crate::api::ArrayPlace;
use crate::heartbeat::Heartbeats;
use crate::store::UnixMillis;

/// The state for answers that change nothing.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) decisions: &'a Decisions,
    pub(crate) jobs: &'a Jobs,
    pub(crate) attempts: &'a Attempts,
    pub(crate) gpus: &'a Gpus,
    pub(crate) servers: &'a RemoteServers,
    pub(crate) pools: &'a Pools,
    pub(crate) accounting: &'a Accounting,
    pub(crate) predictions: &'a Predictions,
    pub(crate) host: &'a Host,
    /// When the manager was started.
    pub(crate) started: UnixMillis,
    pub(crate) heartbeats: &'a Heartbeats,
    /// Nothing more is launched.
    pub(crate) draining: bool,
    /// Why nothing can be decided.
    pub(crate) unavailable: Option<&'a str>,
}

/// The place of a job in its array, if it has one.
fn array_place(job: &Job) -> Option<ArrayPlace> {
    job.spec.array.map(ArrayPlace::from)
}

impl View<'_> {
    /// Texts with times and names for people.
    fn worded<T>(self, text: impl FnOnce(Wording<'_>) -> T) -> T {
        let (scheduler, now) = (self.decisions.scheduler(), self.decisions.now());
        text(Wording { moment: &|time| moment(time, now), job: &|job| scheduler.label(job).to_string() })
    }
}

/// A time of the scheduler's clock, for people.
pub(super) fn moment(time: Time, now: Time) -> String {
    format!("in {}", carma_format::duration((time - now).get()))
}
