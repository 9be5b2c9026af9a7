//! The recovery ladder: each out-of-memory crash raises the requirement, until nothing larger exists.

use serde::{Deserialize, Serialize};

use crate::units::{Fraction, MiB};

/// One rung of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// What it had, and this much more.
    Add(MiB),
    /// The next of these shares of the GPU's memory, in steps no larger than this; a rung that is climbed as often as
    /// there is a next one.
    Buckets {
        /// Rising shares of the GPU's memory.
        shares: Vec<Fraction>,
        /// The largest step.
        largest_step: MiB,
    },
    /// A whole idle GPU; tried again on a larger one where there is any.
    WholeGpu,
}

/// How far a job has climbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LadderPosition {
    /// Out-of-memory crashes so far.
    pub crashes: u32,
    /// The next attempt starts with at least this much memory to take on each device.
    pub floor: MiB,
    /// The next attempt starts on idle devices only.
    pub whole_gpu: bool,
    rung: usize,
}

/// What is known about a crash.
#[derive(Debug, Clone, Copy)]
pub struct OomContext {
    /// The memory that was available to the attempt per device: its need, its floor, or what it used or reported as its need.
    pub had: MiB,
    /// The memory of the smallest device it ran on: every rank will ask for the same.
    pub capacity: MiB,
    /// The smallest device memory above that, where there is any.
    pub next_capacity: Option<MiB>,
    /// It had its devices for itself when it crashed: it needs a larger one, not another turn.
    pub alone: bool,
}

impl LadderPosition {
    /// Where the job goes from here; `None`: there is nothing larger to try.
    ///
    /// ```
    /// use carma_core::{Fraction, LadderPosition, MiB, OomContext, Rung};
    /// let ladder = [Rung::Add(MiB(2048)), Rung::WholeGpu];
    /// let oom = OomContext { had: MiB(5120), capacity: MiB(40_960), next_capacity: None, alone: false };
    /// let first = LadderPosition::default().after(oom, &ladder).unwrap();
    /// assert_eq!((first.floor, first.whole_gpu), (MiB(7168), false));
    /// let second = first.after(oom, &ladder).unwrap();
    /// assert_eq!((second.floor, second.whole_gpu), (MiB(40_960), true));
    /// assert_eq!(second.after(OomContext { alone: true, ..oom }, &ladder), None);
    /// ```
    pub fn after(self, oom: OomContext, ladder: &[Rung]) -> Option<Self> {
        let had = oom.had.max(self.floor);
        let climbed = |rung, floor: MiB, whole_gpu| Self { crashes: self.crashes + 1, floor, whole_gpu, rung };
        if oom.alone {
            return oom.next_capacity.map(|larger| climbed(self.rung, larger, true));
        }
        if self.whole_gpu {
            // Others came and took of it.
            return Some(climbed(self.rung, self.floor, true));
        }
        for (place, rung) in ladder.iter().enumerate().skip(self.rung) {
            let (floor, next) = match rung {
                Rung::Add(more) => (had + *more, place + 1),
                Rung::Buckets { shares, largest_step } => {
                    let bucket = shares.iter().map(|share| oom.capacity.share(*share)).find(|bucket| *bucket > had);
                    let Some(bucket) = bucket else { continue };
                    (bucket.min(had + *largest_step), place)
                }
                Rung::WholeGpu => return Some(climbed(place, oom.capacity, true)),
            };
            // A floor near the whole GPU can be met only by an idle one, which has a rung of its own.
            if floor < oom.capacity {
                return Some(climbed(next, floor, false));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floors(ladder: &[Rung], had: u64, capacity: u64) -> Vec<(u64, bool)> {
        let oom = OomContext { had: MiB(had), capacity: MiB(capacity), next_capacity: None, alone: false };
        let again = |climb: LadderPosition| climb.after(OomContext { alone: climb.whole_gpu, ..oom }, ladder);
        let climbs = std::iter::successors(again(LadderPosition::default()), |climb| again(*climb));
        climbs.map(|climb| (climb.floor.0, climb.whole_gpu)).collect()
    }

    fn buckets() -> Rung {
        Rung::Buckets { shares: [0.25, 0.5, 0.75].map(Fraction::clamped).to_vec(), largest_step: MiB(8192) }
    }

    #[test]
    fn the_published_ladder_goes_to_a_whole_gpu_at_once() {
        assert_eq!(floors(&[Rung::WholeGpu], 5120, 40_960), [(40_960, true)]);
    }

    #[test]
    fn the_successors_ladder_climbs_buckets_in_steps_of_at_most_8_gib() {
        let climbed = floors(&[buckets(), Rung::WholeGpu], 5120, 40_960);
        assert_eq!(climbed, [(10_240, false), (18_432, false), (20_480, false), (28_672, false), (30_720, false), (40_960, true)]);
        assert_eq!(floors(&[buckets(), Rung::WholeGpu], 31_000, 40_960), [(40_960, true)], "above the last bucket");
    }

    #[test]
    fn a_floor_that_needs_a_whole_gpu_is_skipped() {
        assert_eq!(floors(&[Rung::Add(MiB(2048)), buckets(), Rung::WholeGpu], 39_000, 40_960), [(40_960, true)]);
        assert_eq!(floors(&[Rung::Add(MiB(2048))], 39_000, 40_960), []);
    }

    #[test]
    fn a_whole_gpu_is_tried_again_on_a_larger_one() {
        let small = OomContext { had: MiB(11_000), capacity: MiB(11_264), next_capacity: Some(MiB(40_960)), alone: false };
        let first = LadderPosition::default().after(small, &[Rung::WholeGpu]).unwrap();
        let joined = first.after(small, &[Rung::WholeGpu]).unwrap();
        assert_eq!((joined.floor, joined.crashes), (MiB(11_264), 2), "it shared its GPU: the same memory again");
        let second = first.after(OomContext { alone: true, ..small }, &[Rung::WholeGpu]).unwrap();
        assert_eq!((first.floor, second.floor, second.crashes), (MiB(11_264), MiB(40_960), 2));
        let large = OomContext { had: MiB(40_000), capacity: MiB(40_960), next_capacity: None, alone: true };
        assert_eq!(second.after(large, &[Rung::WholeGpu]), None);
    }
}
