//! A sample of a GPU with the processes on it.

use std::collections::BTreeMap;

use carma_core::{AttemptId, Fraction, MiB, Time, Utilisation, Watts};
use carma_gpu::Reading;
use carma_gpu::profiling::Counters;
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;

/// A sample of a GPU or a MIG instance. Instances have no own energy: a partitioned GPU is sampled as a whole for it.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageSample {
    /// When.
    pub at: Time,
    /// Memory in use by all processes.
    pub memory_used: MiB,
    /// Its counter of energy.
    pub energy: Option<Millijoules>,
    /// Power drawn.
    pub power: Option<Watts>,
    /// How busy it was.
    pub utilisation: Utilisation,
    /// The attempts and other processes on it, each once.
    pub occupants: Vec<GpuConsumer>,
}

/// An attempt, or all other processes, on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuConsumer {
    /// The holder.
    pub holder: Holder,
    /// Memory held; unset if the driver does not report it.
    pub memory: Option<MiB>,
    /// Share of time that its kernels ran, if the driver reports it for processes.
    pub busy: Option<Fraction>,
}

/// The user of a part of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// An attempt of ours.
    Attempt(AttemptId),
    /// All processes that are not ours.
    Others,
}

impl UsageSample {
    /// From a reading and its counters. `owner` gives the attempt of a process, and `busy` its activity if known.
    pub fn new(
        at: Time,
        reading: &Reading,
        counters: Option<&Counters>,
        owner: impl Fn(u32) -> Option<AttemptId>,
        busy: impl Fn(u32) -> Option<Fraction>,
    ) -> Self {
        let mut occupants: BTreeMap<Holder, GpuConsumer> = BTreeMap::new();
        for process in &reading.processes {
            let holder = owner(process.pid).map_or(Holder::Others, Holder::Attempt);
            let (memory, busy) = (process.memory, busy(process.pid));
            let add = |occupant: &mut GpuConsumer| {
                occupant.memory = occupant.memory.zip(memory).map(|(before, more)| before + more);
                let sum = |before: Fraction| Fraction::clamped(before.get() + busy.map_or(0.0, Fraction::get));
                occupant.busy = occupant.busy.map(sum).or(busy);
            };
            occupants.entry(holder).and_modify(add).or_insert(GpuConsumer { holder, memory, busy });
        }
        Self {
            at,
            memory_used: reading.memory_used,
            energy: reading.energy.map(Millijoules::from_joules),
            power: reading.power,
            utilisation: reading.sample(at, counters).utilisation,
            occupants: occupants.into_values().collect(),
        }
    }
}

impl UsageSample {
    /// One of our attempts, if it was on the GPU.
    pub fn occupant(&self, attempt: AttemptId) -> Option<&GpuConsumer> {
        self.occupants.iter().find(|occupant| occupant.holder == Holder::Attempt(attempt))
    }

    /// Our attempts on the GPU, and their memory if known.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptId, Option<MiB>)> {
        self.occupants.iter().filter_map(|occupant| match occupant.holder {
            Holder::Attempt(attempt) => Some((attempt, occupant.memory)),
            Holder::Others => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carma_core::JobId;
    use carma_gpu::{GpuProcess, ProcessKind};

    #[test]
    fn processes_of_one_attempt_are_one() {
        let process = |pid, memory: u64| GpuProcess { pid, kind: ProcessKind::Compute, memory: Some(MiB(memory)), gpu_instance: None };
        let reading = Reading {
            memory_used: MiB(1000),
            memory_total: MiB(4000),
            utilisation: None,
            power: None,
            energy: Some(1.5),
            temperature: None,
            clock: None,
            uncorrected: None,
            throttling: std::collections::BTreeSet::new(),
            processes: vec![process(1, 100), process(2, 200), process(3, 300), process(4, 50)],
        };
        let attempt = AttemptId { job: JobId(7), number: 1 };
        let busy = |pid| (pid == 2).then(|| Fraction::clamped(0.5));
        let sample = UsageSample::new(Time::from_secs(1), &reading, None, |pid| (pid < 3).then_some(attempt), busy);
        assert_eq!(sample.energy, Some(Millijoules(1500)));
        let ours = GpuConsumer { holder: Holder::Attempt(attempt), memory: Some(MiB(300)), busy: Some(Fraction::clamped(0.5)) };
        assert_eq!(sample.occupants, [ours, GpuConsumer { holder: Holder::Others, memory: Some(MiB(350)), busy: None }]);
    }
}
