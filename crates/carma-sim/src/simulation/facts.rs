//! What a workload's ranks do on each kind of GPU, worked out once.

use carma_core::{Fraction, MiB};

use crate::catalogue::{Catalogue, RankProfile, WorkloadId};
use crate::hardware::{GPU_TYPES, GpuType, Servers, Sharing, rank_power};
use crate::interference::{Character, InterferenceModel, slice_slowdown};

/// A rank on one kind of GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankFacts {
    pub(super) profile: RankProfile,
    pub(super) character: Character,
    /// Watts above idle when alone.
    pub(super) watts: f64,
    /// How much longer its steps take than in the catalogue, when alone.
    pub(super) stretch: f64,
}

impl RankFacts {
    /// Of a rank on the whole of a GPU, or on an instance with this share of it.
    pub(super) fn new(model: &InterferenceModel, workload: &crate::Workload, rank: &RankProfile, kind: &GpuType, share: Fraction) -> Self {
        let (stretch, here) = kind.stretch(rank);
        let slice = slice_slowdown(&here, share);
        Self {
            character: model.character(workload, &here),
            // A rank that is slowed down draws less, and no more than its part of the GPU.
            watts: (rank_power(kind, &here) / slice).min((kind.limit_watts - kind.idle_watts) * share.get()),
            stretch: stretch * slice,
            profile: here,
        }
    }

    pub(super) fn peak(&self) -> MiB {
        self.profile.peak
    }
}

/// The facts of every workload on every kind of GPU there is.
#[derive(Debug)]
pub(super) struct FactTable {
    /// By kind of GPU (as in [`GPU_TYPES`]), workload and rank.
    facts: Vec<Vec<Vec<RankFacts>>>,
}

impl FactTable {
    pub(super) fn new(catalogue: &Catalogue, model: &InterferenceModel, servers: &Servers, sharing: Sharing) -> Self {
        let (_, share) = sharing.devices();
        let of_kind = |kind: &GpuType| {
            let ranks =
                |workload: &crate::Workload| workload.ranks.iter().map(|rank| RankFacts::new(model, workload, rank, kind, share)).collect();
            catalogue.iter().map(|(_, workload)| ranks(workload)).collect()
        };
        let used = |kind: &&GpuType| servers.groups.iter().any(|group| group.kind == *kind);
        let facts = GPU_TYPES.iter().map(|kind| if used(&kind) { of_kind(kind) } else { Vec::new() }).collect();
        Self { facts }
    }

    /// Ranks beyond those measured do as the last one.
    pub(super) fn get(&self, kind: usize, workload: WorkloadId, rank: usize) -> &RankFacts {
        let ranks = &self.facts[kind][workload.0];
        &ranks[rank.min(ranks.len() - 1)]
    }
}
