//! One look at a GPU, with who was on it.

use std::collections::BTreeMap;

use carma_core::{AttemptId, Fraction, MiB, Time, Watts};
use carma_gpu::Reading;
use carma_gpu::profiling::Counters;

use super::energy::Millijoules;

/// What was seen of a GPU or of a MIG instance. Instances have no energy of their own: a GPU that is cut is looked at as a whole for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// When.
    pub at: Time,
    /// Memory in use by anybody.
    pub memory_used: MiB,
    /// Its counter of energy.
    pub energy: Option<Millijoules>,
    /// Power drawn.
    pub power: Option<Watts>,
    /// What it did.
    pub activity: Activity,
    /// Who was there, each once.
    pub present: Vec<Presence>,
}

/// What a device did, as shares of the time since the look before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// Time that multiprocessors had work.
    pub smact: Option<Fraction>,
    /// Warps resident on multiprocessors.
    pub smocc: Option<Fraction>,
    /// Time that the memory was read or written.
    pub drama: Option<Fraction>,
    /// Time that at least one kernel ran.
    pub utilisation: Option<Fraction>,
}

/// Somebody on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Who.
    pub holder: Holder,
    /// Memory held; unset where the driver does not tell.
    pub memory: Option<MiB>,
    /// Share of time that its kernels ran, where the driver tells it of processes.
    pub busy: Option<Fraction>,
}

/// Who is on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// An attempt of ours.
    Attempt(AttemptId),
    /// All who are not ours.
    Others,
}

impl Look {
    /// From a reading and its counters. `whose` knows our processes, and `busy` how active a process was, where the driver told.
    pub fn new(
        at: Time,
        reading: &Reading,
        counters: Option<&Counters>,
        whose: impl Fn(u32) -> Option<AttemptId>,
        busy: impl Fn(u32) -> Option<Fraction>,
    ) -> Self {
        let mut present: BTreeMap<Holder, Presence> = BTreeMap::new();
        for process in &reading.processes {
            let holder = whose(process.pid).map_or(Holder::Others, Holder::Attempt);
            let (memory, busy) = (process.memory, busy(process.pid));
            let add = |presence: &mut Presence| {
                presence.memory = presence.memory.zip(memory).map(|(before, more)| before + more);
                let sum = |before: Fraction| Fraction::clamped(before.get() + busy.map_or(0.0, Fraction::get));
                presence.busy = presence.busy.map(sum).or(busy);
            };
            present.entry(holder).and_modify(add).or_insert(Presence { holder, memory, busy });
        }
        let sample = reading.sample(at, counters);
        Self {
            at,
            memory_used: reading.memory_used,
            energy: reading.energy.map(Millijoules::from_joules),
            power: reading.power,
            activity: Activity { smact: sample.smact, smocc: sample.smocc, drama: sample.drama, utilisation: sample.utilisation },
            present: present.into_values().collect(),
        }
    }
}

impl Look {
    /// What was seen of one of our attempts, if it was there.
    pub fn presence(&self, attempt: AttemptId) -> Option<&Presence> {
        self.present.iter().find(|presence| presence.holder == Holder::Attempt(attempt))
    }

    /// Our attempts that were there, and their memory where the driver told.
    pub fn attempts(&self) -> impl Iterator<Item = (AttemptId, Option<MiB>)> {
        self.present.iter().filter_map(|presence| match presence.holder {
            Holder::Attempt(attempt) => Some((attempt, presence.memory)),
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
            processes: vec![process(1, 100), process(2, 200), process(3, 300), process(4, 50)],
        };
        let attempt = AttemptId { job: JobId(7), number: 1 };
        let busy = |pid| (pid == 2).then(|| Fraction::clamped(0.5));
        let look = Look::new(Time::from_secs(1), &reading, None, |pid| (pid < 3).then_some(attempt), busy);
        assert_eq!(look.energy, Some(Millijoules(1500)));
        let ours = Presence { holder: Holder::Attempt(attempt), memory: Some(MiB(300)), busy: Some(Fraction::clamped(0.5)) };
        assert_eq!(look.present, [ours, Presence { holder: Holder::Others, memory: Some(MiB(350)), busy: None }]);
    }
}
