//! The signs of progress of each attempt.

use std::collections::HashMap;

use carma_core::{AttemptId, DeviceId, Stall, Time};

use super::Attempts;
use crate::configuration::WatchConfig;
use crate::executor::Executor;
use crate::watch::{AttemptSample, GpuSign, StallWatch};

/// The signs of one attempt.
#[derive(Debug, Default)]
pub(super) struct ProgressSigns {
    /// What its GPUs did for it in the last samples.
    gpus: HashMap<DeviceId, GpuSign>,
    watch: Option<StallWatch>,
}

impl Attempts {
    /// What a GPU did for an attempt in a sample.
    pub(crate) fn gpu_seen(&mut self, attempt: AttemptId, device: DeviceId, sign: GpuSign) {
        if let Some(active) = self.active.get_mut(&attempt) {
            active.signs.gpus.insert(device, sign);
        }
    }

    /// What its GPUs did for it since the last call. A GPU that was not sampled is missing.
    pub(crate) fn take_gpu_signs(&mut self, attempt: AttemptId) -> HashMap<DeviceId, GpuSign> {
        self.active.get_mut(&attempt).map(|active| std::mem::take(&mut active.signs.gpus)).unwrap_or_default()
    }

    /// Judges an attempt, if it runs. Returns whether it hangs or is slow; otherwise what was known `before`.
    pub(crate) fn look(
        &mut self,
        attempt: AttemptId,
        before: Option<Stall>,
        worked: bool,
        now: Time,
        config: &WatchConfig,
        look: impl FnOnce(&dyn Executor) -> AttemptSample,
    ) -> Option<Stall> {
        let Some(active) = self.active.get_mut(&attempt).filter(|active| active.started) else { return before };
        let watch = active.signs.watch.get_or_insert_with(|| StallWatch::new(worked || before.is_some()));
        watch.look(look(self.executor.as_ref()), before, now, config)
    }

    /// Whether the activity of processes would tell if an attempt hangs.
    pub(crate) fn has_suspects(&self, now: Time, config: &WatchConfig) -> bool {
        let watches = self.active.values().filter_map(|active| active.signs.watch.as_ref());
        watches.into_iter().any(|watch| watch.needs_activity(now, config))
    }
}
