//! Cores and memory of hosts, and users' quotas: no job is launched into what is not there.

use std::collections::BTreeMap;

use carma_core::*;

use super::world::World;

/// The test's record of a host: the last reading of available memory, and the attempts launched since.
#[derive(Debug, Clone)]
pub(super) struct HostReading {
    pub(super) available: MiB,
    pub(super) launched: BTreeMap<AttemptId, MiB>,
}

impl World {
    /// Reports what is available of a host's memory.
    pub(super) fn host_memory(&mut self, server: ServerId, available: MiB) {
        self.host_readings.insert(server, HostReading { available, launched: BTreeMap::new() });
        self.accepted(Event::HostMemory { server, available });
    }

    /// Launches overbook no host and keep every user within the quota.
    pub(super) fn check_shares(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::Launch { attempt, placement, .. } = action {
                let spec = self.scheduler().job(attempt.job).unwrap().spec.clone();
                self.check_host(*attempt, &spec, placement.server);
                self.check_quota(&spec, placement);
            }
        }
    }

    fn check_host(&mut self, attempt: AttemptId, spec: &JobSpec, server: ServerId) {
        let scheduler = self.log.scheduler();
        let Server { spec: ServerSpec { cores, host_memory, .. }, host, .. } = scheduler.fleet().server(server).unwrap();
        let cores_fit = spec.cpus.is_none() || cores.is_none_or(|cores| host.booked.cores <= cores);
        let memory_fits = spec.host_memory.is_none() || host_memory.is_none_or(|memory| host.booked.memory <= memory);
        assert!(cores_fit && memory_fits, "{attempt} overbooks {server}: {:?}", host.booked);
        if let (Some(reading), Some(claim)) = (self.host_readings.get_mut(&server), spec.host_memory) {
            reading.launched.insert(attempt, claim);
            let runs = |attempt: &AttemptId| {
                scheduler.job(attempt.job).and_then(|job| job.state.active()).is_some_and(|active| active.attempt == *attempt)
            };
            reading.launched.retain(|attempt, _| runs(attempt));
            let sum: MiB = reading.launched.values().copied().sum();
            assert!(sum <= reading.available, "{attempt} counts on memory of {server} that others count on: {reading:?}");
        }
    }

    fn check_quota(&self, spec: &JobSpec, placement: &Placement) {
        let running = self.scheduler().jobs().filter(|job| job.spec.user == spec.user).filter_map(|job| job.state.active());
        let sum = running.fold(QuotaUse::default(), |sum, active| sum + QuotaUse::of(&active.placement));
        let (quota, taken) = (self.scheduler().config().quotas.of(spec.user), QuotaUse::of(placement));
        let jobs = quota.jobs.is_none_or(|jobs| sum.jobs <= jobs);
        // A lowered quota of GPUs is no matter for a job without.
        let gpus = taken.gpus == 0 || quota.gpus.is_none_or(|gpus| sum.gpus <= gpus);
        let memory = taken.memory == MiB::ZERO || quota.memory.is_none_or(|memory| sum.memory <= memory);
        assert!(jobs && gpus && memory, "{} brings {} to {sum:?} of {quota:?}", spec.id, spec.user);
    }

    /// A job may be refused only if its user may never have this much.
    pub(super) fn check_refusal(&self, spec: &JobSpec) {
        let mut again = self.scheduler().clone();
        let refusal = again.handle(Event::JobSubmitted(Box::new(spec.clone())), self.now).unwrap_err();
        assert!(matches!(refusal, EventError::Quota { over, .. } if is_beyond(over)), "{refusal}");
    }
}

/// Whether the whole quota does not suffice for the job.
pub(super) fn is_beyond(over: OverQuota) -> bool {
    match over {
        OverQuota::Jobs { .. } => false,
        OverQuota::Gpus { needed, limit, .. } => needed > limit,
        OverQuota::Memory { needed, limit, .. } => needed > limit,
    }
}
