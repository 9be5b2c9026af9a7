//! Whether a job saves energy on a GPU in use, so that an idle one stays idle.

use crate::device::Device;
use crate::forecast::{Character, ForecastConfig, speeds};

/// Whether the job makes more progress for its watts beside the others than alone: there it adds a part of what it would add to an
/// idle GPU, and makes progress at a part of its speed while it slows the others down. No job may be slowed down beyond the limit.
pub(crate) fn packing_pays(device: &Device, job: Character, limits: ForecastConfig) -> bool {
    if device.tenants.is_empty() {
        return false;
    }
    let mode = device.spec.mode;
    let mut characters: Vec<Character> = device.tenants.iter().map(|tenant| tenant.character).collect();
    let before: f64 = speeds(&characters, mode).iter().sum();
    characters.push(job);
    let after = speeds(&characters, mode);
    let gain = after.iter().sum::<f64>() - before;
    let slowest = after.iter().copied().fold(1.0, f64::min);
    gain >= device.power_left().max(limits.gain) && slowest * limits.slowdown >= 1.0
}
