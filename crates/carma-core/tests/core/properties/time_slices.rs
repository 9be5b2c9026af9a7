//! Time slices end when a waiting job can use the GPUs, and only for jobs that can checkpoint.

use carma_core::*;

use super::world::World;

impl World {
    pub(super) fn check_time_slices(&self, before: &Scheduler, actions: &[Action]) {
        let scheduler = self.scheduler();
        for action in actions {
            match action {
                Action::Signal { attempt, reason: StopReason::TimeSliceOver | StopReason::Moved, .. } => {
                    assert!(scheduler.job(attempt.job).unwrap().spec.may_checkpoint, "{attempt} cannot checkpoint");
                }
                Action::Requeue { job, reason: RequeueReason::TimeSliceOver, .. } => {
                    let job = scheduler.job(*job).unwrap();
                    let queued_before = |other: &Job| other.place() < job.place() || other.spec.priority < job.spec.priority;
                    let mut others = before.queue().filter(|other| other.id() != job.id());
                    assert!(others.all(queued_before), "{} queues before a job that waited", job.id());
                }
                _ => {}
            }
        }
        self.check_overdue();
    }

    /// No job whose time slice is over keeps a GPU that it has alone, and that the head of the queue could have.
    fn check_overdue(&self) {
        let scheduler = self.scheduler();
        // Under a budget the head may lack power in any case; and the longest may be next instead of the first.
        let Some(length) = scheduler
            .config()
            .time_slices
            .length
            .filter(|_| scheduler.config().power.budget.is_none() && scheduler.config().queue.critical <= 0.0)
        else {
            return;
        };
        let any_job_stops = scheduler.jobs().any(|job| job.state.active().is_some_and(|active| active.stopping.is_some()));
        let Some(head) = scheduler.queue().next().filter(|head| head.spec.gpus == 1 && !any_job_stops) else { return };
        let plain = head.spec.mode == RequestedMode::Auto && head.spec.host_claim() == HostClaim::default();
        // Its user may have to leave the GPU, or the server, to users who have used less; or the server ends too soon.
        let answers = scheduler.explain(head.id()).unwrap().devices;
        let kept = |obstacle: &Obstacle| {
            let ends = matches!(obstacle, Obstacle::ServerEnding | Obstacle::EndsTooSoon { .. });
            ends || matches!(obstacle, Obstacle::ReservedForFairShare | Obstacle::HostReservedForFairShare)
        };
        let left_to_others = |device: DeviceId| answers.iter().any(|answer| answer.device == device && answer.obstacles.iter().any(kept));
        for job in scheduler.jobs().filter(|job| plain && job.spec.may_checkpoint && job.spec.priority <= head.spec.priority) {
            let Some(active) = job.state.active().filter(|active| active.launched_at + length <= scheduler.now()) else { continue };
            for granted in &active.placement.devices {
                let device = scheduler.fleet().device(granted.device).unwrap();
                let open = !(device.lost || device.drained || device.host_short || device.partitioned || device.sampled_at.is_some());
                let alone = device.tenants.len() == 1 && device.foreign.is_empty();
                let left = device.telemetry.memory_used().unwrap_or(MiB(u64::MAX)) - device.tenants[0].attributed();
                let others = left > scheduler.config().admission.idle_memory;
                let needed = head.spec.memory.known.iter().flat_map(PerRank::values).copied().max();
                let needed =
                    needed.or_else(|| head.spec.memory.estimated.iter().flat_map(PerRank::values).map(|estimate| estimate.upper).max());
                let fits = needed.unwrap_or_default().max(head.climb.floor) <= device.spec.memory;
                let may_have = open && !left_to_others(device.id());
                assert!(!(may_have && alone && !others && fits), "{} keeps {} from {}", job.id(), device.id(), head.id());
            }
        }
    }
}
