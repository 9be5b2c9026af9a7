//! Memory that is given back: only what an attempt has not used for long, and only where its estimate is good or its memory limited.

use carma_core::*;

use super::world::World;

/// The test's record of an attempt's memory on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenMemory {
    peak: MiB,
    /// When it last rose by more than noise.
    rose_at: Time,
}

impl World {
    /// An attempt is about to be seen to use this much.
    pub(super) fn note_memory(&mut self, attempt: AttemptId, device: DeviceId, memory: MiB) {
        let rose_at = self.now.max(self.scheduler().now());
        let seen = self.memory.entry((attempt, device)).or_insert(SeenMemory { peak: memory, rose_at });
        if memory.0 as f64 > 1.02 * seen.peak.0 as f64 {
            seen.rose_at = rose_at;
        }
        seen.peak = seen.peak.max(memory);
    }

    pub(super) fn check_trims(&self, before: &Scheduler) {
        let (scheduler, config) = (self.scheduler(), self.scheduler().config());
        for device in scheduler.fleet().devices() {
            let earlier = before.fleet().device(device.id()).map_or(&[][..], |device| &device.tenants);
            for tenant in &device.tenants {
                let attempt = tenant.attempt;
                if earlier.iter().all(|earlier| earlier.attempt != attempt || earlier.reserved <= tenant.reserved) {
                    continue;
                }
                // An exclusive job that is idle gives back all that it does not need.
                if is_lent(scheduler, attempt) && !is_lent(before, attempt) {
                    continue;
                }
                let seen = self.memory[&(attempt, device.id())];
                let unused = config.admission.trim_after.is_some_and(|after| scheduler.now() - seen.rose_at >= after);
                assert!(unused, "{attempt} gave memory back at {}: {seen:?}", scheduler.now());
                assert!(tenant.reserved > seen.peak, "{attempt} keeps {} and used {}", tenant.reserved, seen.peak);
                let job = scheduler.job(attempt.job).unwrap();
                assert!(is_limited(job, device.id()) || is_sure(job), "{attempt} may still need what it gave back");
            }
        }
    }
}

fn is_lent(scheduler: &Scheduler, attempt: AttemptId) -> bool {
    let active = scheduler.job(attempt.job).and_then(|job| job.state.active());
    active.and_then(|active| active.idle).is_some_and(|idle| idle.lent)
}

fn is_limited(job: &Job, device: DeviceId) -> bool {
    let granted = job.state.active().and_then(|active| active.placement.devices.iter().find(|granted| granted.device == device));
    granted.is_some_and(|granted| matches!(granted.limits, Limits::Mps { memory: Some(_), .. } | Limits::Driver { .. }))
}

fn is_sure(job: &Job) -> bool {
    let MemoryNeed { known, estimated } = &job.spec.memory;
    let close = |estimate: &MemoryEstimate| estimate.upper.0 as f64 <= 1.4 * estimate.expected.0 as f64;
    let sure = known.is_some() || estimated.as_ref().is_some_and(|estimated| estimated.values().iter().all(close));
    sure && job.climb.floor == MiB::ZERO && !job.climb.whole_gpu
}
