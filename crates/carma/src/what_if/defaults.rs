//! The measurements of an attempt, and defaults for missing ones.

use carma_core::{Fraction, Granted, Metric, MiB};
use carma_manager::api::{AttemptDetail, JobDetail};
use carma_manager::store::UnixMillis;
use carma_sim::{Catalogue, Physics, RankProfile};

use super::alone::Stay;
use super::machine::Machine;

/// Defaults for missing measurements: the mean over the known workloads.
#[derive(Debug)]
pub(super) struct Defaults {
    rank: RankProfile,
    reading: f64,
}

impl Defaults {
    pub(super) fn new() -> Self {
        let catalogue = Catalogue::shipped();
        let ranks: Vec<&RankProfile> = catalogue.iter().flat_map(|(_, workload)| &workload.ranks).collect();
        let mean = |of: fn(&RankProfile) -> f64| ranks.iter().map(|rank| of(rank)).sum::<f64>() / ranks.len().max(1) as f64;
        let counter = |of: fn(&RankProfile) -> f64| Fraction::clamped(mean(of));
        let rank = RankProfile {
            peak: MiB(mean(|rank| rank.peak.0 as f64) as u64),
            smact: counter(|rank| rank.smact.get()),
            smocc: counter(|rank| rank.smocc.get()),
            drama: counter(|rank| rank.drama.get()),
            utilisation: counter(|rank| rank.utilisation.get()),
            power: None,
        };
        Self { rank, reading: Physics::default().reading }
    }

    /// An attempt on its GPUs, with measured, else estimated, else default values.
    pub(super) fn stay(&self, job: &JobDetail, attempt: &AttemptDetail, machine: &Machine, now: UnixMillis) -> Stay {
        let expected = &job.estimate.utilisation;
        let counter = |metric: Metric, defaults: Fraction, reading: f64| {
            let otherwise = || Fraction::clamped(expected[metric].unwrap_or(defaults).get() * reading);
            attempt.utilisation[metric].unwrap_or_else(otherwise)
        };
        let rank = |(rank, granted): (usize, &Granted)| {
            let place = machine.place(granted.device);
            let kind = machine.kind(place);
            let seen = attempt.peaks.get(rank).copied().filter(|peak| *peak > MiB::ZERO);
            let peak = seen.or(job.estimate.expected).or(job.estimate.declared).unwrap_or(self.rank.peak);
            let profile = RankProfile {
                peak: peak.clamp(MiB(1), kind.memory - kind.reserved()),
                smact: counter(Metric::Smact, self.rank.smact, self.reading),
                smocc: counter(Metric::Smocc, self.rank.smocc, self.reading),
                drama: counter(Metric::Drama, self.rank.drama, 1.0),
                utilisation: counter(Metric::Utilisation, self.rank.utilisation, 1.0),
                power: None,
            };
            (place, profile)
        };
        let second = |UnixMillis(at): UnixMillis| at as f64 / 1000.0;
        Stay {
            from: second(attempt.launched),
            to: second(attempt.ended.unwrap_or(now)),
            ranks: attempt.placement.devices.iter().enumerate().map(rank).collect(),
        }
    }
}
