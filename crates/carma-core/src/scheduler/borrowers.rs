//! Jobs that borrow memory: one is stopped before the driver has to evict it.
//!
//! The driver keeps its promise to the other jobs in any case: it evicts a borrower when they take what is reserved for them. A job that is asked before can write
//! a checkpoint, so it is asked as soon as the memory that is free no longer covers what is reserved. A job that cannot is left until the device is full.

use super::Scheduler;
use super::action::{Action, Signal};
use crate::config::Config;
use crate::device::Device;
use crate::job::{Borrowing, StopReason};
use crate::tenant::Tenant;
use crate::units::{MiB, Time};
use crate::{AttemptId, DeviceId};

impl Scheduler {
    /// Stops a borrower on a device, if other attempts there lack memory that is reserved for them.
    pub(super) fn relieve_pressure(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) {
        let Some(device) = self.fleet.device(device) else { return };
        let job = |tenant: &Tenant| self.jobs.get(&tenant.attempt.job);
        let leaves = |tenant: &Tenant| job(tenant).and_then(|job| job.state.active()).is_some_and(|active| active.stopping.is_some());
        // The memory of the stopped job may be sufficient.
        if !self.config.enforce.stop_borrowers || device.tenants.iter().any(leaves) {
            return;
        }
        let may_checkpoint = |tenant: &Tenant| job(tenant).is_some_and(|job| job.spec.may_checkpoint);
        if let Some((attempt, borrowing)) = borrower_to_stop(device, &self.config, may_checkpoint) {
            let signal =
                if self.jobs.get(&attempt.job).is_some_and(|job| job.spec.may_checkpoint) { Signal::Checkpoint } else { Signal::Terminate };
            self.stop(attempt, StopReason::Borrows(borrowing), signal, now, actions);
        }
    }
}

/// The borrower that is stopped now, if any: one that can checkpoint before the others, then the one that borrows most.
fn borrower_to_stop(device: &Device, config: &Config, may_checkpoint: impl Fn(&Tenant) -> bool) -> Option<(AttemptId, Borrowing)> {
    let (free, is_full) = device.free_memory(config);
    let borrowers = device.tenants.iter().filter(|tenant| tenant.borrowed() > MiB::ZERO && (is_full || may_checkpoint(tenant)));
    let tenant = borrowers.max_by_key(|tenant| (may_checkpoint(tenant), tenant.borrowed(), tenant.launched_at))?;
    let others = device.tenants.iter().filter(|other| other.attempt != tenant.attempt);
    let short = others.map(Tenant::owed).sum::<MiB>() - free;
    let borrowing = Borrowing { reserved: tenant.reserved, borrowed: tenant.borrowed(), short };
    (short > MiB::ZERO).then_some((tenant.attempt, borrowing))
}
