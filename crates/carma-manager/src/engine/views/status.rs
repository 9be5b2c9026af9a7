//! The status of the manager.

use carma_core::{DeviceId, Enforcement, Seconds};
use carma_format::duration;

use super::View;
use crate::api::{MetricDetail, Status};
use crate::engine::gpus::Silence;
use crate::host_gpus::LOCAL_SERVER;
use crate::last_errors;
use crate::metrics::ORPHANED;
use crate::store::{DrainCause, Drained, UnixMillis};

/// Maximum number of delayed attempts in the status: usually they have the same reason.
const DELAYED_SHOWN: usize = 3;
/// Maximum number of jobs in the status that hang or are slow: `carma queue` has all.
const STALLED_SHOWN: usize = 5;

impl View<'_> {
    pub(crate) fn status(self) -> Status {
        let fleet = self.decisions.scheduler().fleet();
        let drained = fleet.devices().filter(|device| device.drained).map(|device| self.drained(device.id()));
        let stalled = self.decisions.scheduler().jobs().filter_map(|job| Some(format!("{} {}", job.id(), job.state.active()?.stall?)));
        let lost = fleet.devices().filter(|device| device.lost);
        let lost = lost.map(|device| format!("{} is lost: it fell off the bus or needs a reset", device.id()));
        let silent = fleet.devices().filter_map(|device| {
            let Silence { lasted, error } = self.silence(device.id())?;
            Some(format!("{} has not answered for {}: {error}", device.id(), duration(lasted.get())))
        });
        let short = self.host.shortage().map(|shortage| format!("the host starts no new attempts: {shortage}"));
        let orphaned = self.gpus.sampling().all().filter_map(|sample| {
            let unaccounted = sample.reading.as_ref().ok()?.unaccounted().filter(|memory| *memory >= ORPHANED)?;
            Some(format!("{}: {unaccounted} in use without a process", sample.device))
        });
        let broken = if self.broken_gpus() > 0 { &self.gpus.excluded().failures[..] } else { &[] };
        let unwritable = self.unavailable.map(|reason| format!("no job can be accepted or started: {reason}"));
        let delayed = self.attempts.delayed().map(|(attempt, reason)| {
            let label = self.decisions.label(attempt.job);
            format!("{label} attempt {} could not be launched, and is tried again: {reason}", attempt.number)
        });
        let cluster = self.cluster_problems();
        let stuck = self.heartbeats.stuck().map(|stuck| stuck.to_string());
        let problems = unwritable
            .into_iter()
            .chain(stuck)
            .chain(cluster)
            .chain(short)
            .chain(broken.iter().cloned())
            .chain(lost)
            .chain(silent)
            .chain(drained)
            .chain(orphaned)
            .chain(stalled.take(STALLED_SHOWN))
            .chain(delayed.take(DELAYED_SHOWN));
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            now: self.decisions.wall(),
            started: self.started,
            up: Seconds::new((UnixMillis::now().0.saturating_sub(self.started.0)) as f64 / 1000.0).unwrap_or_default(),
            observes: self.setup.observes,
            draining: self.draining,
            gpu_source: self.setup.world.description.clone(),
            emulated: self.setup.world.is_emulated(),
            speed: self.decisions.clock.speed(),
            gpus: number(fleet.devices().filter(|device| !device.partitioned).count()),
            servers: number(self.servers.iter().count()),
            pools: number(self.pools.iter().count()),
            policy: self.decisions.scheduler().config().mapping.policy.name.to_owned(),
            metrics: MetricDetail::all(),
            jobs: self.counts(),
            errors: last_errors::last(),
            left_out: self.gpus.excluded().reasons.clone(),
            not_enforced: self.setup.enforced.missing().into_iter().map(str::to_owned).chain(self.gpu_memory_not_enforced()).collect(),
            problems: problems.collect(),
        }
    }

    /// Since when a device is drained, and why.
    fn drained(self, device: DeviceId) -> String {
        let Some(Drained { since, cause, .. }) = self.gpus.drained(device) else { return format!("{device} is drained") };
        let ago = duration(self.decisions.wall().0.saturating_sub(since.0) as f64 / 1000.0);
        match cause {
            DrainCause::Faults(faults) => format!("{device} is drained because of its faults: {faults}; {ago} ago"),
            DrainCause::User(user) => format!("{device} was drained by {user} {ago} ago"),
            DrainCause::Unknown => format!("{device} was drained {ago} ago"),
        }
    }

    /// GPUs that were broken already when the manager started, so that it does not know which they are.
    pub(super) fn broken_gpus(self) -> u32 {
        let fleet = self.decisions.scheduler().fleet();
        let local = fleet.devices().filter(|device| device.id().server() == LOCAL_SERVER && device.id().instance.is_none());
        let known = local.filter(|device| device.lost || self.silence(device.id()).is_some()).count();
        u32::try_from(self.gpus.excluded().failing.saturating_sub(known)).unwrap_or(u32::MAX)
    }

    /// Why the driver does not limit the GPU memory of jobs on this host, if so.
    fn gpu_memory_not_enforced(self) -> Option<String> {
        let off = self.decisions.scheduler().config().enforce.where_possible() == Enforcement::Off;
        let why = if off { Some("enforce.memory is off".to_owned()) } else { self.gpus.cannot_limit_memory().map(|why| why.to_string()) };
        why.filter(|_| self.gpus.has_local()).map(|why| format!("GPU memory ({why})"))
    }

    /// What is wrong with servers of agents and pools.
    fn cluster_problems(self) -> Vec<String> {
        let away = self.servers.iter().filter(|server| !server.is_connected());
        let away = away.map(|server| format!("the agent of {} on {} is not connected", server.stored.id, server.stored.node));
        let paused = self.pools.iter().filter(|pool| !pool.removed);
        let paused = paused.filter_map(|pool| Some(format!("pool {} is {}", pool.name, pool.paused.as_ref()?)));
        let silent = self.pools.problem.iter().map(|reason| format!("the batch system does not answer, and pilots go on: {reason}"));
        away.chain(paused).chain(silent).collect()
    }
}
