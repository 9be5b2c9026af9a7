//! What monitors would show of a device ahead of time.

use carma_core::{
    AttemptId, Device, DeviceId, Event, Fraction, Metric, MiB, Owner, PerMetric, ProcessUse, Statistics, Tenant, TenantMemory,
    WindowSummary,
};

/// The share of their reserved memory that jobs use.
const HELD: Fraction = Fraction::clamped(0.9);

/// The events that show a device with these of its tenants on it.
pub(super) fn shown(device: &Device, is_seen: impl Fn(AttemptId) -> bool) -> [Event; 2] {
    let memory = |tenant: &Tenant| match tenant.memory {
        TenantMemory::Unreadable => None,
        TenantMemory::Reading(reading) => Some(reading),
        TenantMemory::Unseen => Some(tenant.reserved.share(HELD)),
    };
    let seen = || device.tenants.iter().filter(|tenant| is_seen(tenant.attempt));
    let ours = seen().map(|tenant| ProcessUse { owner: Owner::Attempt(tenant.attempt), memory: memory(tenant) });
    let processes: Vec<ProcessUse> = ours.chain(device.foreign.iter().copied()).collect();
    let attributed: MiB = device.tenants.iter().map(Tenant::attributed).sum();
    let outside = device.occupied() - attributed;
    let held: MiB = seen().map(|tenant| memory(tenant).unwrap_or(tenant.reserved)).sum();
    let load = |of: fn(&Tenant) -> f64| Some(Statistics::steady(seen().map(of).sum::<f64>().min(1.0)));
    let statistics = PerMetric::from_fn(|metric| match metric {
        Metric::Smact => load(|tenant| tenant.profile.smact),
        Metric::Drama => load(|tenant| tenant.profile.drama),
        _ => None,
    });
    let window = WindowSummary { full: true, memory_used: outside + held, statistics, power: None };
    let id: DeviceId = device.id();
    [Event::ProcessesSeen { device: id, processes }, Event::GpuWindow { device: id, window: Box::new(window) }]
}
