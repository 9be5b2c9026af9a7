//! GPUs that are not for this manager: it runs no jobs on them and does not change them.

use std::collections::BTreeSet;

use carma_gpu::{DeviceUuid, Inventory, LeftOut, Unfit};

/// The GPUs of the host that are not used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ExcludedGpus {
    /// GPUs that are not used by choice: a line for each reason.
    pub(crate) reasons: Vec<String>,
    /// GPUs that cannot be used: a line for each reason.
    pub(crate) failures: Vec<String>,
    /// How many GPUs that is.
    pub(crate) failing: usize,
    /// GPUs that the driver lists and that answer, used or not.
    present: BTreeSet<DeviceUuid>,
    /// GPUs that others use, wholly or in part.
    others: BTreeSet<DeviceUuid>,
}

impl ExcludedGpus {
    pub(crate) fn of(inventory: &Inventory) -> Self {
        let is_excluded = |left_out: &&LeftOut| matches!(left_out.reason, Unfit::Excluded(_));
        let whole = inventory.left_out.iter().filter(is_excluded).filter_map(|left_out| left_out.uuid.clone());
        let parts = inventory.gpus.iter().filter(|gpu| gpu.usable_instances.is_some()).map(|gpu| gpu.uuid.clone());
        let left_out = inventory.left_out.iter().filter_map(|left_out| left_out.uuid.clone());
        Self {
            reasons: inventory.exclusions(),
            failures: inventory.failures(),
            failing: inventory.left_out.iter().filter(|left_out| left_out.reason.is_fault()).count(),
            present: inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).chain(left_out).collect(),
            others: whole.chain(parts).collect(),
        }
    }

    /// Logs which GPUs are not used.
    pub(crate) fn log(&self) {
        self.reasons.iter().for_each(|reason| tracing::info!("{reason}"));
        self.failures.iter().for_each(|reason| tracing::warn!("{reason}"));
    }

    /// Whether the driver lists this GPU, and it answers. One that does not is lost, or hangs.
    pub(crate) fn is_present(&self, gpu: &DeviceUuid) -> bool {
        self.present.contains(gpu)
    }

    /// Whether others may use this GPU or a part of it: then its mode and power limit must not be changed.
    pub(crate) fn has(&self, gpu: &DeviceUuid) -> bool {
        self.others.contains(gpu)
    }
}

#[cfg(test)]
mod tests {
    use carma_gpu::Exclusion;

    use super::*;

    #[test]
    fn gpus_of_others_are_distinguished_from_unusable_gpus() {
        let uuid = |name: &str| name.parse::<DeviceUuid>().unwrap();
        let left_out = |index, name: &str, reason| LeftOut { index, uuid: Some(uuid(name)), name: None, reason };
        let other = left_out(0, "GPU-a", Unfit::Excluded(Exclusion::NotVisible));
        let inventory = Inventory {
            driver: String::new(),
            cuda: String::new(),
            gpus: Vec::new(),
            left_out: vec![other, left_out(1, "GPU-b", Unfit::DisplayOnly), LeftOut { uuid: None, ..left_out(2, "GPU-c", Unfit::Lost) }],
        };
        let excluded = ExcludedGpus::of(&inventory);
        assert_eq!([excluded.has(&uuid("GPU-a")), excluded.has(&uuid("GPU-b"))], [true, false]);
        assert_eq!((excluded.reasons.len(), excluded.failing), (2, 1));
        assert_eq!(excluded.failures, ["GPU 2 is not used: fell off the bus or needs a reset"]);
        assert_eq!(["GPU-a", "GPU-b", "GPU-c"].map(|name| excluded.is_present(&uuid(name))), [true, true, false]);
    }
}
