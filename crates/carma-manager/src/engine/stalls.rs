//! Checks running attempts, and reports those that hang or are slow to the core.

use carma_core::{Active, AttemptId, Event, Fraction, OnHang, ServerId};

use super::state::EngineState;
use crate::watch::{AttemptSample, Conditions, GpuSign, Signs};

impl EngineState {
    /// The GPUs of a server were sampled: reads what its attempts report, and checks each of them.
    pub(super) fn check_attempts(&mut self, server: ServerId) {
        self.attempts.poll(&mut self.decisions, server);
        for attempt in self.attempts.on(server) {
            self.check_attempt(attempt);
        }
        self.ask_activity_for_suspects();
    }

    fn check_attempt(&mut self, attempt: AttemptId) {
        let signs = self.attempts.take_gpu_signs(attempt);
        let Some(job) = self.decisions.job(attempt.job).filter(|job| job.spec.on_hang != OnHang::Ignore) else { return };
        // An attempt that was told to end may be quiet.
        let watched = |active: &&Active| active.attempt == attempt && active.stopping.is_none();
        let Some(active) = job.state.active().filter(watched) else { return };
        let (before, progress, may_checkpoint) = (active.stall, job.progress, job.spec.may_checkpoint);
        let gpus = active.placement.devices.iter().map(|granted| signs.get(&granted.device).copied().unwrap_or_default());
        let gpu = GpuSign::of_all(gpus.collect::<Vec<_>>());
        let conditions = self.conditions(active);
        let config = &self.setup.configuration.manager.watch;
        // After a restart of the manager, it is not known otherwise.
        let worked = progress.is_some_and(|done| done > Fraction::ZERO);
        let stall = self.attempts.look(attempt, before, worked, self.decisions.now(), config, |executor| {
            let checkpoint = may_checkpoint.then(|| executor.checkpoint(attempt)).flatten().and_then(|times| times.changed);
            AttemptSample { signs: Signs { gpu, output: executor.output(attempt), progress, checkpoint }, conditions }
        });
        if before != stall {
            self.decisions.tell_or_log(Event::StallSeen { attempt, stall });
        }
    }

    /// What slows an attempt down besides itself; unset without GPUs: what runs beside it on the host is not compared.
    fn conditions(&self, active: &Active) -> Option<Conditions> {
        let fleet = self.decisions.scheduler().fleet();
        let mut conditions = Conditions::default();
        for granted in &active.placement.devices {
            let device = fleet.device(granted.device)?;
            let others = device.tenants.iter().map(|tenant| tenant.attempt).filter(|other| *other != active.attempt);
            conditions.neighbours.extend(others);
            conditions.foreign += device.foreign.len();
            let reading = self.gpus.sampling().latest(granted.device).and_then(|sample| sample.reading.as_ref().ok());
            conditions.throttling.extend(reading.into_iter().flat_map(|reading| &reading.throttling));
        }
        (!active.placement.devices.is_empty()).then_some(conditions)
    }

    /// The driver is asked for the activity of processes while an attempt is quiet on a GPU where others work.
    fn ask_activity_for_suspects(&mut self) {
        let wanted = self.attempts.has_suspects(self.decisions.now(), &self.setup.configuration.manager.watch);
        if self.gpus.set_suspects(wanted) {
            self.gpus.rules_changed(&self.decisions);
            let servers: Vec<ServerId> = self.servers.iter().map(|server| server.stored.id).collect();
            for server in servers {
                self.ask_remote_activity(server);
            }
        }
    }
}
