//! Looks at GPUs, from what is known of them now.

use carma_core::Fraction;
use carma_manager::api::{GpuDetail, RecentLooks};
use carma_manager::store::UnixMillis;

/// One look at each GPU.
pub(super) fn looks_of(gpus: &[GpuDetail], now: UnixMillis) -> Vec<RecentLooks> {
    let share = |share: Option<Fraction>| vec![share.map(Fraction::get)];
    let look = |gpu: &GpuDetail| RecentLooks {
        device: gpu.device,
        at: vec![now],
        memory: vec![gpu.memory_used.unwrap_or_default()],
        smact: share(gpu.utilisation.smact),
        smocc: share(gpu.utilisation.smocc),
        drama: share(gpu.utilisation.drama),
        gpu: share(gpu.utilisation.gpu),
        power: vec![gpu.power],
        tenants: Vec::new(),
    };
    gpus.iter().map(look).collect()
}
