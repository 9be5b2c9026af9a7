//! How much GPU memory a job needs, as far as known.

use serde::{Deserialize, Serialize};

use crate::units::MiB;

/// One value for all ranks of a job, or one for each where ranks differ (rank 0 of `DataParallel` gathers, for example).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum PerRank<T> {
    /// All ranks alike.
    Same(T),
    /// One value a rank, in rank order.
    Each(Vec<T>),
}

impl<T> PerRank<T> {
    /// The value for one rank; `None` when the list is too short.
    pub fn get(&self, rank: usize) -> Option<&T> {
        match self {
            Self::Same(value) => Some(value),
            Self::Each(values) => values.get(rank),
        }
    }

    /// Every value given.
    pub fn values(&self) -> &[T] {
        match self {
            Self::Same(value) => std::slice::from_ref(value),
            Self::Each(values) => values,
        }
    }

    /// The same of other values.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> PerRank<U> {
        match self {
            Self::Same(value) => PerRank::Same(of(value)),
            Self::Each(values) => PerRank::Each(values.into_iter().map(of).collect()),
        }
    }

    /// Whether it has values for exactly this many ranks.
    pub fn covers(&self, ranks: usize) -> bool {
        match self {
            Self::Same(_) => true,
            Self::Each(values) => values.len() == ranks,
        }
    }
}

/// An estimator's answer for one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryEstimate {
    /// The most likely peak.
    pub expected: MiB,
    /// A bound the peak should stay under; what admission counts with.
    pub upper: MiB,
}

impl MemoryEstimate {
    /// An estimate of one number, from estimators that do not say how sure they are.
    pub const fn exactly(value: MiB) -> Self {
        Self { expected: value, upper: value }
    }

    /// Whether it leaves little doubt.
    fn is_sure(&self) -> bool {
        self.upper.0 as f64 <= NARROW_RATIO * self.expected.0 as f64
    }
}

/// An estimate whose upper bound is at most this many times the expected peak leaves little doubt.
const NARROW_RATIO: f64 = 1.4;

/// Everything known about a job's memory: what its user declared and what an estimator answered, either or none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryNeed {
    /// Known: declared by the user or measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<PerRank<MiB>>,
    /// Estimated, with an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<PerRank<MemoryEstimate>>,
}

impl MemoryNeed {
    /// A known need, the same on every rank.
    pub const fn known(value: MiB) -> Self {
        Self { known: Some(PerRank::Same(value)), estimated: None }
    }

    /// An estimated need, the same on every rank.
    pub const fn estimated(expected: MiB, upper: MiB) -> Self {
        Self { known: None, estimated: Some(PerRank::Same(MemoryEstimate { expected, upper })) }
    }

    /// Whether the need of every rank is known, or estimated with little doubt.
    pub(crate) fn is_sure(&self) -> bool {
        self.known.is_some() || self.estimated.as_ref().is_some_and(|estimated| estimated.values().iter().all(MemoryEstimate::is_sure))
    }

    /// What a policy that trusts `basis` knows about one rank.
    pub(crate) fn of_rank(&self, rank: usize, basis: MemoryBasis) -> RankMemory {
        let known = || self.known.as_ref()?.get(rank).copied().map(RankMemory::Known);
        let estimated =
            || self.estimated.as_ref()?.get(rank).map(|estimate| RankMemory::Estimated { upper: estimate.upper, sure: estimate.is_sure() });
        match basis {
            MemoryBasis::Known => known().or_else(estimated),
            MemoryBasis::Estimate => estimated(),
            MemoryBasis::Floor => None,
        }
        .unwrap_or(RankMemory::Unknown)
    }
}

/// What is known about one rank's need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankMemory {
    /// It needs this much: on a smaller GPU it cannot run at all.
    Known(MiB),
    /// It probably stays under this; a GPU that is smaller may still do.
    Estimated {
        /// The bound.
        upper: MiB,
        /// Whether the estimate leaves little doubt.
        sure: bool,
    },
    /// Unknown.
    Unknown,
}

impl RankMemory {
    /// What it needs or probably needs, else this.
    pub(crate) fn or(self, unknown: MiB) -> MiB {
        match self {
            Self::Known(memory) | Self::Estimated { upper: memory, .. } => memory,
            Self::Unknown => unknown,
        }
    }
}

/// Which knowledge a mapping policy uses; the prefix of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryBasis {
    /// The known need, else the estimate, else the floor: `magm`.
    #[default]
    Known,
    /// The estimate, else the floor, as if nothing were declared: `est-magm`.
    Estimate,
    /// The floor for every job; recovery does the rest: `or-magm`.
    Floor,
}
