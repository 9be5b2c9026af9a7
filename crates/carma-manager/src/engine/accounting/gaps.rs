//! Time without samples: who was on which GPU meanwhile.

use std::collections::HashMap;
use std::time::SystemTime;

use carma_core::{DeviceId, Seconds};

use crate::attempt::Past;
use crate::executor::Adopted;
use crate::host_gpus::LOCAL_SERVER;
use crate::measure::Gap;
use crate::store::StoredAttempt;

/// The time since the last samples, for each GPU that is not sampled yet.
#[derive(Debug, Default)]
pub(super) struct Gaps(HashMap<DeviceId, Gap>);

impl Gaps {
    /// Since this moment, in the host's time, with what is known of the attempts.
    pub(super) fn since(
        since: SystemTime,
        devices: impl Iterator<Item = DeviceId>,
        attempts: &[(&StoredAttempt, Adopted)],
        speed: f64,
    ) -> Self {
        let real = since.elapsed().ok().and_then(|span| Seconds::new(span.as_secs_f64()).ok()).unwrap_or(Seconds::ZERO);
        let of_device = |device: DeviceId| {
            let on_it = attempts.iter().filter(|(stored, _)| stored.placement.devices.iter().any(|granted| granted.device == device));
            Gap {
                span: real.times(speed),
                present: on_it.map(|(stored, adopted)| (stored.attempt, presence(stored, *adopted, real).times(speed))).collect(),
            }
        };
        Self(devices.map(|device| (device, of_device(device))).collect())
    }

    /// The gap of a GPU, once.
    pub(super) fn take(&mut self, device: DeviceId) -> Option<Gap> {
        self.0.remove(&device)
    }
}

/// How long an attempt ran in the last `span` of the host's time.
fn presence(stored: &StoredAttempt, adopted: Adopted, span: Seconds) -> Seconds {
    match adopted {
        Adopted::Running { ran: Some(ran) } => ran.min(span),
        Adopted::Over(Some(Past { ran, ago })) => (ran + ago).min(span) - ago,
        Adopted::Running { ran: None } | Adopted::Starting => span,
        // What runs on other servers is known only when their agents connect.
        Adopted::NeverStarted if stored.placement.server != LOCAL_SERVER => span,
        Adopted::Over(None) | Adopted::NeverStarted => Seconds::ZERO,
    }
}
