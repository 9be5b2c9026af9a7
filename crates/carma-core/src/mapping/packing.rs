//! Whether a job saves energy on a GPU in use, so that an idle one stays idle.

use crate::device::Device;
use crate::forecast::{ForecastConfig, InterferenceProfile, speeds};

/// Whether the job makes more progress for its watts beside the others than alone: there it adds a part of what it would add to an
/// idle GPU, and makes progress at a part of its speed while it slows the others down. No job may be slowed down beyond the limit.
pub(crate) fn packing_pays(device: &Device, job: InterferenceProfile, limits: ForecastConfig) -> bool {
    if device.tenants.is_empty() {
        return false;
    }
    let mode = device.spec.mode;
    let mut profiles: Vec<InterferenceProfile> = device.tenants.iter().map(|tenant| tenant.profile).collect();
    let before: f64 = speeds(&profiles, mode).iter().sum();
    profiles.push(job);
    let after = speeds(&profiles, mode);
    let gain = after.iter().sum::<f64>() - before;
    let slowest = after.iter().copied().fold(1.0, f64::min);
    gain >= device.power_left().max(limits.gain) && slowest * limits.slowdown >= 1.0
}
