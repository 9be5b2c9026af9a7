//! The learned estimators that ship with the crate, and how they are made again.

use std::sync::OnceLock;

use super::dataset::{Keep, clean, generate};
use super::dnnperf::{self, DnnPerf, GraphFeatures};
use super::features::Features;
use super::gpumemnet::{Architecture, Classes, GpuMemNet, WeightsError, labelled};
use crate::allocator::AllocatorSettings;
use crate::data::{Family, Label, Network, Observation};
use crate::estimators::{Estimator, Question};
use crate::model::Model;
use crate::stack::Stack;
use crate::training::Training;

/// Size of classes in MiB, by family, as published: MLPs need little.
pub const fn class_size(family: Family) -> f64 {
    match family {
        Family::Mlp => 1024.0,
        Family::Cnn | Family::Transformer => 8.0 * 1024.0,
    }
}

/// A file of learned numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// Its name in the folder of weights.
    pub file: String,
    /// What is in it.
    pub text: String,
}

/// Trains everything that ships, from measured (or otherwise labelled) observations of all families; a family without any is left out.
///
/// Classifiers learn from the random networks of their family, crashed ones too; the learner over graphs from all that has layers and a
/// measured peak. The same observations and seed give the same files.
///
/// Whoever watches is told of each network that is trained, and how many there are in all.
pub fn train_all(observations: &[Observation], seed: u64, trained: &(dyn Fn(usize) + Sync)) -> Result<Vec<Weights>, WeightsError> {
    let mut ensembles = Vec::new();
    for family in Family::ALL {
        let random = |row: &&Observation| row.family == Some(family) && !matches!(row.network, Network::FullyConnected(_));
        let rows: Vec<Observation> = observations.iter().filter(random).cloned().collect();
        if !rows.is_empty() {
            ensembles.extend([Architecture::Mlp, Architecture::Transformer].map(|architecture| (family, architecture, rows.clone())));
        }
    }
    let measured = dnnperf::measured(observations);
    let all = ensembles.iter().map(|(_, architecture, _)| architecture.members().len()).sum::<usize>() + usize::from(!measured.is_empty());
    let mut files = Vec::new();
    for (family, architecture, rows) in ensembles {
        if let Some(network) = train(&rows, architecture, class_size(family), seed, &|| trained(all)) {
            files.push(Weights { file: file_of(family, architecture), text: network.write()? });
        }
    }
    if !measured.is_empty() {
        let rows: Vec<(&GraphFeatures, f64)> = measured.iter().map(|(_, features, memory)| (features, *memory)).collect();
        let text = serde_json::to_string(&DnnPerf::train(&rows, seed))? + "\n";
        files.push(Weights { file: "dnnperf.json".to_owned(), text });
        trained(all);
    }
    Ok(files)
}

/// Random Transformers labelled by replay of made-up events: too few are measured to train on. With the published tables of random networks
/// and of fully connected ones, they are what the shipped weights were trained on (seed 1).
pub fn replayed_transformers() -> Vec<Observation> {
    // The stack that the random networks were measured on.
    let Some(stack) = Stack::named("pytorch-eager-kernels") else { return Vec::new() };
    let memory = |model: &Model, training: &Training| {
        let allocator = AllocatorSettings::default();
        let question = Question {
            model: Some(model),
            training,
            recording: None,
            stack,
            allocator,
            gpu: None,
            confidence: crate::confidence::DEFAULT_CONFIDENCE,
        };
        Estimator::Static.estimate(&question).map_or(0.0, |answer| answer.bytes as f64 / f64::from(1 << 20))
    };
    clean(generate(Family::Transformer, 2000, 1, Label::Static, &memory), Keep { crashed: true }).kept
}

/// Trains an ensemble for classes of `size` MiB on observations of one family; nothing where there are none.
fn train(observations: &[Observation], architecture: Architecture, size: f64, seed: u64, trained: &(dyn Fn() + Sync)) -> Option<GpuMemNet> {
    let rows = labelled(observations, size);
    let classes = Classes::for_all(size, rows.iter().map(|(.., class)| *class));
    let rows: Vec<(&Features, usize)> = rows.iter().map(|(_, features, class)| (features, *class)).collect();
    (!rows.is_empty()).then(|| GpuMemNet::train_watched(architecture, classes, &rows, seed, trained))
}

fn file_of(family: Family, architecture: Architecture) -> String {
    let architecture = match architecture {
        Architecture::Mlp => "mlp",
        Architecture::Transformer => "transformer",
    };
    format!("gpumemnet_{family}_by_{architecture}.json")
}

impl GpuMemNet {
    /// The ensemble that ships for a family.
    pub fn shipped(family: Family, architecture: Architecture) -> Option<&'static Self> {
        static READ: OnceLock<Vec<GpuMemNet>> = OnceLock::new();
        let all = READ.get_or_init(|| TEXTS.iter().filter_map(|text| Self::read(text).ok()).collect());
        all.iter().find(|network| network.family() == family && network.architecture() == architecture)
    }
}

impl DnnPerf {
    /// The learner that ships.
    pub fn shipped() -> Option<&'static Self> {
        static READ: OnceLock<Option<DnnPerf>> = OnceLock::new();
        READ.get_or_init(|| serde_json::from_str(include_str!("../../weights/dnnperf.json")).ok()).as_ref()
    }
}

/// Ensembles by family, for both architectures.
const TEXTS: [&str; 6] = [
    include_str!("../../weights/gpumemnet_mlp_by_mlp.json"),
    include_str!("../../weights/gpumemnet_mlp_by_transformer.json"),
    include_str!("../../weights/gpumemnet_cnn_by_mlp.json"),
    include_str!("../../weights/gpumemnet_cnn_by_transformer.json"),
    include_str!("../../weights/gpumemnet_transformer_by_mlp.json"),
    include_str!("../../weights/gpumemnet_transformer_by_transformer.json"),
];
