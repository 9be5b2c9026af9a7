//! Memory limits of the driver for an attempt: its control group is made and limited before the attempt starts.

use carma_core::{DeviceId, DriverLimits, Limits, MiB};
use carma_gpu::{DeviceUuid, Driver, MemoryLimits};

use super::StartOrder;
use crate::attempt::{HostLimits, Order};
use crate::launch::NotLaunched;
use crate::supervise::Cgroup;

/// Devices on which an attempt runs without its limits, and why.
#[derive(Debug)]
pub(super) struct Unlimited {
    pub(super) devices: Vec<DeviceId>,
    pub(super) reason: String,
}

/// The control group of an attempt, limited as far as that is possible.
#[derive(Debug)]
pub(super) struct Limited {
    /// Unset where it needs none, or gets none.
    pub(super) group: Option<Cgroup>,
    pub(super) unlimited: Option<Unlimited>,
}

/// Makes the group of an attempt and sets its limits on each of its GPUs. An attempt that must not run without them is an error.
pub(super) fn limit(order: &StartOrder, plan: &Order, driver: Option<&Driver>) -> Result<Limited, NotLaunched> {
    let limited: Vec<(DeviceId, &DeviceUuid, DriverLimits)> = limits(order).collect();
    if limited.is_empty() {
        return Ok(Limited { group: None, unlimited: None });
    }
    let all = || limited.iter().map(|(device, ..)| *device).collect();
    if plan.afterwards.is_some() {
        let reason = "its container belongs to a daemon, not to a control group of the job".to_owned();
        return Ok(Limited { group: None, unlimited: Some(Unlimited { devices: all(), reason }) });
    }
    let made = driver.zip(group(order, &plan.limits));
    let (group, unlimited) = match made {
        None => (None, Some(Unlimited { devices: all(), reason: "it gets no control group".to_owned() })),
        Some((driver, group)) => {
            let refused = |(device, gpu, limits): &(DeviceId, &DeviceUuid, DriverLimits)| {
                let set = driver.set_memory_limits(gpu, group.path(), bytes(*limits));
                set.err().map(|error| (*device, error.to_string()))
            };
            let (devices, reasons): (Vec<_>, Vec<_>) = limited.iter().filter_map(refused).unzip();
            (Some(group), reasons.into_iter().next().map(|reason| Unlimited { devices, reason }))
        }
    };
    match unlimited {
        Some(Unlimited { reason, .. }) if order.must_be_limited => {
            // Its limits go with it.
            group.iter().for_each(Cgroup::end);
            Err(NotLaunched::Host(format!("its GPU memory cannot be limited, and enforce.memory is hard: {reason}")))
        }
        unlimited => Ok(Limited { group, unlimited }),
    }
}

fn group(order: &StartOrder, limits: &HostLimits) -> Option<Cgroup> {
    Cgroup::of_attempt(order.attempt, limits)
}

/// The devices that are limited, with their limits.
fn limits(order: &StartOrder) -> impl Iterator<Item = (DeviceId, &DeviceUuid, DriverLimits)> {
    order.placement.devices.iter().zip(&order.devices).filter_map(|(granted, gpu)| {
        let Limits::Driver { memory: hard } = granted.limits else { return None };
        Some((granted.device, gpu, DriverLimits { soft: granted.reserved.min(hard), hard }))
    })
}

/// The same limits for the driver.
pub(crate) const fn bytes(limits: DriverLimits) -> MemoryLimits {
    const fn bytes(memory: MiB) -> u64 {
        memory.0 << 20
    }
    MemoryLimits { soft: bytes(limits.soft), hard: Some(bytes(limits.hard)) }
}
