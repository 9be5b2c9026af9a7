//! Precomputed behaviour of each workload's ranks on each kind of GPU.

use carma_core::{Fraction, MiB, Part};

use crate::catalogue::{Catalogue, RankProfile, Workload, WorkloadId};
use crate::hardware::{GpuType, Servers, Sharing, rank_power};
use crate::interference::{InterferenceModel, RankInterference, slice_slowdown};

/// A rank on one kind of GPU, or on an instance of it.
#[derive(Debug, Clone, Copy)]
pub struct RankFacts {
    /// Its counters there, as shares of the device.
    pub profile: RankProfile,
    /// Its pressure and sensitivity.
    pub interference: RankInterference,
    /// Watts above idle when alone.
    pub watts: f64,
    /// Factor on its step time when alone, relative to the catalogue.
    pub stretch: f64,
    /// The same on the whole GPU, if this is an instance.
    pub whole_stretch: f64,
}

impl RankFacts {
    /// Facts of a rank on a whole GPU, or on an instance with this share of it. For foreign processes only the counters are known.
    pub fn new(model: &InterferenceModel, workload: Option<&Workload>, rank: &RankProfile, kind: &GpuType, share: Fraction) -> Self {
        let (stretch, here) = kind.stretch(rank);
        let slice = slice_slowdown(&here, share);
        Self {
            interference: model.rank_interference(workload, &here),
            // A rank that is slowed down draws less power, and at most its part of the GPU's limit.
            watts: (rank_power(kind, &here) / slice).min((kind.limit_watts - kind.idle_watts) * share.get()),
            stretch: stretch * slice,
            whole_stretch: stretch,
            profile: on_instance(here, share.get() * slice),
        }
    }

    pub(super) fn peak(&self) -> MiB {
        self.profile.peak
    }
}

/// Counters of an instance are relative to the instance.
fn on_instance(whole: RankProfile, share: f64) -> RankProfile {
    let counter = |value: Fraction| Fraction::clamped(value.get() / share.max(f64::MIN_POSITIVE));
    RankProfile { smact: counter(whole.smact), smocc: counter(whole.smocc), drama: counter(whole.drama), ..whole }
}

/// The facts of every workload on every kind of GPU in the run.
#[derive(Debug)]
pub(super) struct FactTable {
    /// Kinds of GPUs, and the shares of them that devices have.
    kinds: Vec<(&'static GpuType, Fraction)>,
    /// By kind of GPU and share, workload and rank.
    facts: Vec<Vec<Vec<RankFacts>>>,
}

impl FactTable {
    /// Covers all kinds of GPUs: whole, partitioned as at the start of the run, and in the other MIG partitions that are allowed.
    pub(super) fn new(catalogue: &Catalogue, model: &InterferenceModel, servers: &Servers, sharing: Sharing, may_be_cut: bool) -> Self {
        let (_, share) = sharing.devices();
        let slices = if may_be_cut {
            [1, 2, 3, 4].map(|slices| Part::of(slices, MiB::ZERO).share()).map(Fraction::clamped).to_vec()
        } else {
            Vec::new()
        };
        let mut kinds: Vec<(&'static GpuType, Fraction)> = Vec::new();
        for kind in servers.groups.iter().map(|group| group.kind) {
            let cuts = slices.iter().filter(|_| kind.has_seven_slices());
            kinds.extend(std::iter::once(&share).chain(cuts).map(|share| (kind, *share)));
        }
        kinds.sort_unstable_by_key(|(kind, share)| (kind.name, *share));
        kinds.dedup();
        let of = |(kind, share): &(&GpuType, Fraction), workload: &Workload| {
            workload.ranks.iter().map(|rank| RankFacts::new(model, Some(workload), rank, kind, *share)).collect()
        };
        let facts = kinds.iter().map(|kind| catalogue.iter().map(|(_, workload)| of(kind, workload)).collect()).collect();
        Self { kinds, facts }
    }

    pub(super) fn kind_place(&self, kind: &GpuType, share: Fraction) -> usize {
        self.kinds.iter().position(|other| *other.0 == *kind && other.1 == share).unwrap_or_default()
    }

    /// Ranks beyond the measured ones behave like the last one.
    pub(super) fn get(&self, kind: usize, workload: WorkloadId, rank: usize) -> &RankFacts {
        let ranks = &self.facts[kind][workload.0];
        &ranks[rank.min(ranks.len() - 1)]
    }
}
