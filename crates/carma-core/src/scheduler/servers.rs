//! Servers that come, end and go: attached, draining, lost under their attempts, detached.
//!
//! ```text
//!   attached ──ServerDraining──► ending: nothing new starts; attempts that can checkpoint leave
//!      │                            │
//!      └── JobExited(ServerLost) ◄──┘ for each attempt that is still there
//!                  │
//!                  └──► no attempts ──ServerDetached──► forgotten
//! ```
//!
//! For a server that is lost without notice, the driver first sends [`Event::HostShort`](super::Event::HostShort): otherwise the job of the
//! first lost attempt could start there again.

use std::collections::BTreeSet;

use super::action::{Action, Signal};
use super::timers::Timer;
use super::{EventError, Scheduler};
use crate::device::Device;
use crate::fleet::{Server, ServerSpec};
use crate::job::{Active, StopReason};
use crate::units::{Seconds, Time};
use crate::{AttemptId, DeviceId, JobId, ServerId};

impl Scheduler {
    pub(super) fn server_attached(&mut self, spec: ServerSpec, now: Time) -> Result<(), EventError> {
        if self.fleet.server(spec.id).is_some() {
            return Err(EventError::DuplicateServer(spec.id));
        }
        self.fleet.add_server(spec);
        self.reconsider_set_aside(now);
        Ok(())
    }

    pub(super) fn server_ends(&mut self, server: ServerId, at: Option<Time>, now: Time) -> Result<(), EventError> {
        self.known_server(server)?;
        self.fleet.update_server(server, &self.config, now, |server| server.spec.ends = at);
        // It may last long enough now for jobs that it was too short for.
        self.reconsider_set_aside(now);
        Ok(())
    }

    pub(super) fn server_draining(&mut self, server: ServerId, now: Time, actions: &mut Vec<Action>) -> Result<(), EventError> {
        let attempts: BTreeSet<AttemptId> = self.known_server(server)?.attempts().collect();
        self.fleet.update_server(server, &self.config, now, Server::set_ending);
        for attempt in attempts {
            self.leave_server(attempt.job, now, actions);
        }
        Ok(())
    }

    /// Asks a job to leave a server that ends soon, if it runs on one and can checkpoint. Others may still end in time.
    pub(super) fn leave_server(&mut self, job: JobId, now: Time, actions: &mut Vec<Action>) {
        let Some(known) = self.jobs.get(&job).filter(|job| job.spec.may_checkpoint) else { return };
        let Some(active) = known.state.active() else { return };
        if servers_of(active).any(|server| self.fleet.server(server).is_some_and(|server| server.ending)) {
            self.stop(active.attempt, StopReason::ServerEnding, Signal::Checkpoint, now, actions);
        }
    }

    pub(super) fn server_detached(&mut self, server: ServerId, now: Time) -> Result<(), EventError> {
        let known = self.known_server(server)?;
        if known.attempts().next().is_some() {
            return Err(EventError::ServerInUse(server));
        }
        let devices: Vec<DeviceId> = known.devices.iter().map(Device::id).collect();
        for device in devices {
            self.end_switch(device, now);
        }
        self.fleet.remove_server(server);
        // A job that was sized for its devices may fit others.
        self.reconsider_set_aside(now);
        Ok(())
    }

    /// A job lost its server. If the server ended as announced and the job cannot checkpoint, it would be lost again on a server that
    /// lasts no longer; so it is remembered how long it ran. A server that failed or was preempted says nothing about the next.
    pub(super) fn remember_lost_server(&mut self, active: &Active, now: Time) {
        let ended = |server: ServerId| {
            self.fleet.server(server).is_some_and(|server| server.ending || server.spec.ends.is_some_and(|ends| ends <= now))
        };
        let as_announced = servers_of(active).any(ended);
        if let Some(job) = self.jobs.get_mut(&active.attempt.job).filter(|job| as_announced && !job.spec.may_checkpoint) {
            job.outlasted = job.outlasted.max(Some(now - active.launched_at));
        }
    }

    /// Considers a waiting job again when it can no longer start where it could until then: others wait behind it.
    pub(super) fn look_when_closed(&mut self, job: JobId, until: Time) {
        if until < Time::MAX {
            self.timers.set(until + Seconds::TICK, Timer::ServerCloses(job));
        }
    }
}

/// The servers that an attempt is on; some may be named twice.
fn servers_of(active: &Active) -> impl Iterator<Item = ServerId> + '_ {
    std::iter::once(active.placement.server).chain(active.placement.devices.iter().map(|granted| granted.device.server()))
}
