//! Restored jobs in a new scheduler.

use carma_core::*;

use super::world::World;

impl World {
    /// A new scheduler that all jobs are restored to, as they were stored, has the same jobs on the same devices and
    /// the same queue; it starts no job before it has seen the devices.
    pub(super) fn restart(&self) {
        let old = self.scheduler();
        let mut new = Scheduler::new(old.config().clone());
        let mut send = |event: Event| new.handle(event, self.now).unwrap();
        for server in old.fleet().servers() {
            send(Event::ServerAttached(server.spec.clone()));
        }
        for device in old.fleet().devices() {
            send(Event::GpuAttached(device.spec.clone()));
        }
        for device in old.fleet().devices().filter(|device| device.lost) {
            send(Event::GpuLost { device: device.id() });
        }
        for server in old.fleet().servers().iter().filter(|server| server.ending) {
            send(Event::ServerDraining { server: server.spec.id });
        }
        send(Event::SharesRestored { used: old.shares(self.now).iter().map(|report| report.past).collect() });
        let jobs: Vec<Job> = old.jobs().cloned().collect();
        let written = serde_json::to_string(&Event::JobsRestored { jobs }).unwrap();
        let actions = send(serde_json::from_str(&written).unwrap());
        assert_eq!(new.audit(), Vec::<String>::new());
        let launched = |action: &Action| matches!(action, Action::Launch { placement, .. } if !placement.devices.is_empty());
        assert!(!actions.iter().any(launched), "{actions:?}");
        let active = |scheduler: &Scheduler| scheduler.jobs().filter_map(|job| job.state.active().cloned()).collect::<Vec<_>>();
        let with_gpus = |all: Vec<Active>| all.into_iter().filter(|active| !active.placement.devices.is_empty()).collect::<Vec<_>>();
        assert_eq!(with_gpus(active(&new)), with_gpus(active(old)));
        // Accounts are read when attempts begin and end, and now; what users have had since may put another before others. The order of each
        // user's own jobs stays.
        let fair = old.config().queue.fair_share;
        let line = |job: &&Job| if fair { Some((job.spec.user, std::cmp::Reverse(job.spec.priority))) } else { None };
        let queue = |scheduler: &Scheduler| {
            let mut jobs: Vec<&Job> = scheduler.queue().collect();
            jobs.sort_by_key(line);
            jobs.into_iter().map(Job::id).collect::<Vec<_>>()
        };
        // What no server could hold may have been set aside by now, or be tried again.
        let (before, after) = (queue(old), queue(&new));
        let common = |one: &[JobId], other: &[JobId]| one.iter().filter(|job| other.contains(job)).copied().collect::<Vec<_>>();
        assert_eq!(common(&after, &before), common(&before, &after));
        // Jobs without GPUs may start at once: whether the host is short is not known yet.
        let waits = |job: &&Job| job.state.waiting().is_some() && job.spec.gpus > 0;
        let waiting = |scheduler: &Scheduler| scheduler.jobs().filter(waits).map(Job::id).collect::<Vec<_>>();
        assert_eq!(waiting(&new), waiting(old));
    }
}
