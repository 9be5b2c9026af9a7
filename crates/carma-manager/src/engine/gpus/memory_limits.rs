//! Memory limits of the driver: they follow what is reserved for an attempt while it runs, and end with it.
//!
//! The executor sets the limits before an attempt starts, and the control group of the attempt carries them. Here they are set again when the reservation changes, and
//! when a manager takes over attempts of an earlier one. The driver is slow, so a thread does it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use carma_core::{AttemptId, DeviceId, DriverLimits, Event};
use carma_gpu::{DeviceUuid, Driver, MemoryLimits};

use super::Gpus;
use super::report::{GpuChange, Reports};
use crate::engine::decide::Decisions;
use crate::event::JobEvent;
use crate::executor::limits_in_bytes;
use crate::host_gpus::LOCAL_SERVER;
use crate::memory_limits::CannotLimit;
use crate::pool::Pool;
use crate::turns::{Limits, OWN};

/// The limits of attempts, as last ordered.
pub(super) struct MemoryLimiter {
    in_force: BTreeMap<(AttemptId, DeviceId), AppliedLimits>,
    orders: Pool<LimitOrder>,
}

/// Limits of a control group on a GPU.
#[derive(Debug)]
struct AppliedLimits {
    gpu: DeviceUuid,
    group: PathBuf,
    limits: DriverLimits,
}

/// An order for the thread.
#[derive(Debug)]
enum LimitOrder {
    Set { attempt: AttemptId, device: DeviceId, gpu: DeviceUuid, group: PathBuf, limits: DriverLimits },
    Clear { gpu: DeviceUuid, group: PathBuf },
}

impl MemoryLimiter {
    /// Starts the thread.
    pub(super) fn start(driver: Option<&Arc<Driver>>, reports: &Reports) -> io::Result<Self> {
        let orders = Pool::start("limits", Limits::at_most(1), || {
            let (driver, reports) = (driver.cloned(), reports.clone());
            Ok::<_, io::Error>(move |order| driver.as_ref().is_some_and(|driver| carry_out(driver, order, &reports)))
        })?;
        Ok(Self { in_force: BTreeMap::new(), orders })
    }
}

/// False when the engine is gone.
fn carry_out(driver: &Driver, order: LimitOrder, reports: &Reports) -> bool {
    match order {
        LimitOrder::Set { attempt, device, gpu, group, limits } => match driver.set_memory_limits(&gpu, &group, limits_in_bytes(limits)) {
            Ok(()) => true,
            // The attempt has ended, and its group with it.
            Err(_) if !group.exists() => true,
            Err(error) => reports.changed(GpuChange::NotLimited { attempt, device, reason: error.to_string() }),
        },
        LimitOrder::Clear { gpu, group } => {
            if group.exists() {
                let cleared = driver.set_memory_limits(&gpu, &group, MemoryLimits::NONE);
                let _ = cleared.inspect_err(|error| tracing::debug!("the memory limits of {} cannot be removed: {error}", group.display()));
            }
            true
        }
    }
}

impl Gpus {
    /// Why the driver cannot limit the memory of jobs on this host; unset: it can.
    pub(crate) fn cannot_limit_memory(&self) -> Option<CannotLimit> {
        let by_driver = self.devices.iter().any(|device| device.limits_memory);
        if by_driver { self.setup.cannot_limit } else { Some(CannotLimit::OldDriver) }
    }

    /// Sets the limits that have changed with a reservation, and clears those of attempts that have ended. `group_of` tells the control group of a running attempt.
    pub(crate) fn follow_reservations(&mut self, decisions: &Decisions, group_of: impl Fn(AttemptId) -> Option<PathBuf>) {
        let Self { devices, memory_limits, .. } = self;
        let mut wanted = BTreeMap::new();
        for device in decisions.scheduler().fleet().devices().filter(|device| device.id().server() == LOCAL_SERVER) {
            wanted.extend(device.tenants.iter().filter_map(|tenant| Some(((tenant.attempt, device.id()), tenant.memory_limits()?))));
        }
        let orders = &memory_limits.orders;
        memory_limits.in_force.retain(|key, AppliedLimits { gpu, group, .. }| {
            let remains = wanted.contains_key(key);
            if !remains {
                orders.add(OWN, LimitOrder::Clear { gpu: gpu.clone(), group: group.clone() });
            }
            remains
        });
        for ((attempt, device), limits) in wanted {
            if memory_limits.in_force.get(&(attempt, device)).is_some_and(|known| known.limits == limits) {
                continue;
            }
            let Some((known, group)) = devices.get(device).zip(group_of(attempt)) else { continue };
            let gpu = known.uuid.clone();
            memory_limits.in_force.insert((attempt, device), AppliedLimits { gpu: gpu.clone(), group: group.clone(), limits });
            memory_limits.orders.add(OWN, LimitOrder::Set { attempt, device, gpu, group, limits });
        }
    }
}

/// An attempt runs on a GPU that does not limit its memory as planned.
pub(crate) fn not_limited(decisions: &mut Decisions, attempt: AttemptId, device: DeviceId, reason: &str) {
    let text = format!("the memory of {attempt} on {device} is not limited: {reason}");
    // The core refuses it if the attempt has ended meanwhile.
    if decisions.tell(Event::NotLimited { attempt, device }).is_ok() {
        decisions.note(attempt.job, JobEvent::Machine { text: text.clone(), warning: false }, text);
    }
}
