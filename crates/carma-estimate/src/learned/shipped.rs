//! The trained estimators that ship with the crate.

use std::sync::OnceLock;

use super::GraphTrees;
use super::gpumemnet::{Architecture, GpuMemNet};
use crate::family::Family;

impl GpuMemNet {
    /// The shipped ensemble for a family.
    pub fn shipped(family: Family, architecture: Architecture) -> Option<&'static Self> {
        static ALL: OnceLock<Vec<GpuMemNet>> = OnceLock::new();
        let all = ALL.get_or_init(|| ENSEMBLES.iter().filter_map(|text| Self::read(text).ok()).collect());
        all.iter().find(|network| network.family() == family && network.architecture() == architecture)
    }
}

impl GraphTrees {
    /// The shipped trees.
    pub fn shipped() -> Option<&'static Self> {
        static TREES: OnceLock<Option<GraphTrees>> = OnceLock::new();
        TREES.get_or_init(|| serde_json::from_str(include_str!("../../weights/boosted_trees.json")).ok()).as_ref()
    }
}

/// Ensembles by family, for both architectures.
const ENSEMBLES: [&str; 6] = [
    include_str!("../../weights/gpumemnet_mlp_by_mlp.json"),
    include_str!("../../weights/gpumemnet_mlp_by_transformer.json"),
    include_str!("../../weights/gpumemnet_cnn_by_mlp.json"),
    include_str!("../../weights/gpumemnet_cnn_by_transformer.json"),
    include_str!("../../weights/gpumemnet_transformer_by_mlp.json"),
    include_str!("../../weights/gpumemnet_transformer_by_transformer.json"),
];
