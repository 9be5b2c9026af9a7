//! Which memory readings of attempts are stored: the first, larger changes, and the last.

use std::collections::HashMap;

use carma_core::{AttemptId, DeviceId, MiB};

use crate::store::{MemoryStep, UnixMillis};

/// Minimum time between two steps of an attempt on a device, in milliseconds.
const MIN_STEP: u64 = 5_000;
/// Changes up to this many MiB, or up to this share, are no steps.
const SMALL: u64 = 64;
const SMALL_PART: f64 = 0.02;

/// The last stored and the last read memory of each attempt on each device.
#[derive(Debug, Default)]
pub(crate) struct MemorySteps(HashMap<(AttemptId, DeviceId), LastSteps>);

#[derive(Debug)]
struct LastSteps {
    written: MemoryStep,
    seen: MemoryStep,
}

impl MemorySteps {
    /// Takes a reading of an attempt's memory. Returns the step to store, if it is one.
    pub(crate) fn seen(&mut self, attempt: AttemptId, device: DeviceId, at: UnixMillis, memory: MiB) -> Option<MemoryStep> {
        let seen = MemoryStep { at, memory };
        let Some(known) = self.0.get_mut(&(attempt, device)) else {
            self.0.insert((attempt, device), LastSteps { written: seen, seen });
            return Some(seen);
        };
        known.seen = seen;
        let before = known.written.memory.0;
        let change = memory.0.abs_diff(before);
        let is_step = change > SMALL && change as f64 > SMALL_PART * before as f64 && at.0 >= known.written.at.0 + MIN_STEP;
        if is_step {
            known.written = seen;
        }
        is_step.then_some(seen)
    }

    /// An attempt is over: takes its last readings that are not stored yet.
    pub(crate) fn last(&mut self, attempt: AttemptId) -> Vec<(DeviceId, MemoryStep)> {
        let of_attempt = self.0.extract_if(|(known, _), _| *known == attempt);
        let last = of_attempt.filter(|(_, known)| known.seen.memory != known.written.memory);
        last.map(|((_, device), known)| (device, known.seen)).collect()
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, ServerId};

    use super::*;

    #[test]
    fn only_changes_are_steps_and_the_last_is_kept() {
        let (gpu, attempt) = (DeviceId::gpu(ServerId(0), 0), AttemptId { job: JobId(1), number: 1 });
        let mut steps = MemorySteps::default();
        let mut written = Vec::new();
        let samples =
            [(0, 300), (1, 9_000), (5, 9_000), (11, 9_064), (12, 9_150), (18, 9_181), (24, 3_000), (26, 9_000), (29, 10_000), (30, 10_100)];
        for (second, memory) in samples {
            written.extend(steps.seen(attempt, gpu, UnixMillis(second * 1000), MiB(memory)).map(|step| (step.at.0 / 1000, step.memory.0)));
        }
        assert_eq!(written, [(0, 300), (5, 9_000), (18, 9_181), (24, 3_000), (29, 10_000)]);
        assert_eq!(steps.last(attempt), [(gpu, MemoryStep { at: UnixMillis(30_000), memory: MiB(10_100) })]);
        assert_eq!(steps.last(attempt), []);
    }
}
