//! Generated traces with a published mix of light, medium and heavy jobs.

use std::fmt;
use std::str::FromStr;

use carma_core::{MiB, Seconds};
use thiserror::Error;

use super::{Trace, TraceJob};
use crate::catalogue::{Catalogue, Workload, WorkloadId};
use crate::random::Random;

/// Weight of a workload, by its memory, as in CARMA's evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightClass {
    /// Small models on small images (CIFAR, MNIST): one GPU, less than 2 GiB.
    Light,
    /// Models on photographs (`ImageNet`): one GPU, 2 to 24 GiB.
    Medium,
    /// More than 24 GiB, or several GPUs.
    Heavy,
}

impl WeightClass {
    const ALL: [Self; 3] = [Self::Light, Self::Medium, Self::Heavy];

    /// The class of a workload.
    pub fn of(workload: &Workload) -> Self {
        const LIGHT: MiB = MiB(2 * 1024);
        const HEAVY: MiB = MiB(24 * 1024);
        match workload.ranks.as_slice() {
            [only] if only.peak < LIGHT => Self::Light,
            [only] if only.peak <= HEAVY => Self::Medium,
            _ => Self::Heavy,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Medium => "medium",
            Self::Heavy => "heavy",
        }
    }
}

/// Percentages of light, medium and heavy jobs. Published mixes are 65/27/8 and 0/83/17.
///
/// ```
/// use carma_sim::trace::Mix;
/// assert_eq!("65/27/8".parse::<Mix>().unwrap().to_string(), "65/27/8");
/// assert!("65/27/9".parse::<Mix>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix([u32; 3]);

/// Error in a mix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MixError {
    /// Not three numbers.
    #[error("a mix is percent of light, medium and heavy jobs, such as 65/27/8")]
    Form,
    /// The percentages do not add up to 100.
    #[error("the shares must add up to 100, not {0}")]
    Sum(u64),
    /// The catalogue has no workload of a class.
    #[error("the catalogue has no {0} workload")]
    NoWorkload(&'static str),
}

impl FromStr for Mix {
    type Err = MixError;
    fn from_str(text: &str) -> Result<Self, MixError> {
        let shares: Vec<u32> = text.split('/').map(str::parse).collect::<Result<_, _>>().map_err(|_| MixError::Form)?;
        let shares: [u32; 3] = shares.try_into().map_err(|_| MixError::Form)?;
        match shares.iter().copied().map(u64::from).sum() {
            100 => Ok(Self(shares)),
            sum => Err(MixError::Sum(sum)),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [light, medium, heavy] = self.0;
        write!(f, "{light}/{medium}/{heavy}")
    }
}

impl Mix {
    /// Number of jobs of each class: rounded to the nearest job, largest remainders first.
    fn counts(self, jobs: usize) -> [usize; 3] {
        let exact = self.0.map(|share| jobs * share as usize);
        let mut counts = exact.map(|hundredths| hundredths / 100);
        let mut order = [0, 1, 2];
        order.sort_by_key(|class| std::cmp::Reverse(exact[*class] % 100));
        for class in order.into_iter().take(jobs - counts.iter().sum::<usize>()) {
            counts[class] += 1;
        }
        counts
    }
}

/// Parameters of a generated trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// Shares of the classes, exact to the nearest job. The order of jobs is random.
    pub mix: Mix,
    /// Number of jobs.
    pub jobs: usize,
    /// Mean time between submissions (independent arrivals). The first is at 0.
    pub mean_gap: Seconds,
    /// The same seed gives the same trace.
    pub seed: u64,
}

/// Generates a trace. Within a class every workload is equally likely.
pub fn generate(wanted: &Generation, catalogue: &Catalogue) -> Result<Trace, MixError> {
    let mut random = Random::new(wanted.seed);
    let mut chosen: Vec<WorkloadId> = Vec::with_capacity(wanted.jobs);
    for (class, count) in WeightClass::ALL.into_iter().zip(wanted.mix.counts(wanted.jobs)) {
        let pool: Vec<WorkloadId> =
            catalogue.drawn().filter(|(_, workload)| WeightClass::of(workload) == class).map(|(id, _)| id).collect();
        if pool.is_empty() && count > 0 {
            return Err(MixError::NoWorkload(class.name()));
        }
        chosen.extend((0..count).map(|_| pool[random.below(pool.len())]));
    }
    random.shuffle(&mut chosen);
    let mut now = Seconds::ZERO;
    let mut trace = Trace::default();
    for (place, id) in chosen.into_iter().enumerate() {
        let (name, gpus) = ((place + 1).to_string(), catalogue.get(id).gpus());
        trace.jobs.push(TraceJob { name, submitted: now, gpus, workload: Some(id), duration: None, owner: None });
        // The inverse of an exponential distribution; the argument is never zero.
        let gap = -wanted.mean_gap.get() * (1.0 - random.fraction()).ln();
        now = now + Seconds::new(gap).unwrap_or_default();
    }
    Ok(trace)
}
