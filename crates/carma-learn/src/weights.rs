//! Training of all weights that ship with `carma-estimate`.

use carma_estimate::Family;
use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::confidence::DEFAULT_CONFIDENCE;
use carma_estimate::estimators::{Estimator, Question};
use carma_estimate::learned::gpumemnet::{Architecture, GpuMemNet, WeightsError};
use carma_estimate::learned::{Features, GraphFeatures};
use carma_estimate::model::Model;
use carma_estimate::stack::Stack;
use carma_estimate::training::Training;

use crate::data::{Label, Network, Observation};
use crate::dataset::{Keep, clean, generate};
use crate::gpumemnet::{self, Schedule, classes_for, labelled};
use crate::graph_trees;

/// Size of classes in MiB, by family, as published: MLPs need little memory.
pub const fn class_size(family: Family) -> f64 {
    match family {
        Family::Mlp => 1024.0,
        Family::Cnn | Family::Transformer => 8.0 * 1024.0,
    }
}

/// A weights file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// Its name in the weights folder.
    pub file: String,
    /// Its content.
    pub text: String,
}

/// Trains all shipped weights, on measured (or otherwise labelled) observations of all families. Skips families without observations.
///
/// The classifiers train on the random networks of their family, including crashed ones; the trees on everything with layers and a measured
/// peak. The same observations and seed give the same files. `trained` is called after each network with the total number of networks.
pub fn train_all(observations: &[Observation], seed: u64, trained: &(dyn Fn(usize) + Sync)) -> Result<Vec<Weights>, WeightsError> {
    let mut ensembles = Vec::new();
    for family in Family::ALL {
        let random = |row: &&Observation| row.family == Some(family) && !matches!(row.network, Network::FullyConnected(_));
        let rows: Vec<Observation> = observations.iter().filter(random).cloned().collect();
        if !rows.is_empty() {
            ensembles.extend([Architecture::Mlp, Architecture::Transformer].map(|architecture| (family, architecture, rows.clone())));
        }
    }
    let measured = graph_trees::measured(observations);
    let all = ensembles.iter().map(|(_, architecture, _)| architecture.members().len()).sum::<usize>() + usize::from(!measured.is_empty());
    let mut files = Vec::new();
    for (family, architecture, rows) in ensembles {
        if let Some(network) = ensemble(&rows, architecture, class_size(family), seed, &|| trained(all)) {
            files.push(Weights { file: file_of(family, architecture), text: network.write()? });
        }
    }
    if !measured.is_empty() {
        let rows: Vec<(&GraphFeatures, f64)> = measured.iter().map(|(_, features, memory)| (features, *memory)).collect();
        let text = serde_json::to_string(&graph_trees::train(&rows, seed))? + "\n";
        files.push(Weights { file: "boosted_trees.json".to_owned(), text });
        trained(all);
    }
    Ok(files)
}

/// Random Transformers labelled by the static estimator: too few are measured. The shipped weights were trained on these, on the published
/// tables of random networks and on the fully connected ones (seed 1).
pub fn replayed_transformers() -> Vec<Observation> {
    // The stack that the random networks were measured on.
    let Some(stack) = Stack::named("pytorch-eager-kernels") else { return Vec::new() };
    let memory = |model: &Model, training: &Training| {
        let allocator = AllocatorSettings::default();
        let question =
            Question { model: Some(model), training, recording: None, stack, allocator, gpu: None, confidence: DEFAULT_CONFIDENCE };
        Estimator::Static.estimate(&question).map_or(0.0, |answer| answer.bytes as f64 / f64::from(1 << 20))
    };
    clean(generate(Family::Transformer, 2000, 1, Label::Static, &memory), Keep { crashed: true }).kept
}

/// Trains an ensemble for classes of `size` MiB on observations of one family; none without rows.
fn ensemble(
    observations: &[Observation],
    architecture: Architecture,
    size: f64,
    seed: u64,
    trained: &(dyn Fn() + Sync),
) -> Option<GpuMemNet> {
    let rows = labelled(observations, size);
    let classes = classes_for(size, rows.iter().map(|(.., class)| *class));
    let rows: Vec<(&Features, usize)> = rows.iter().map(|(_, features, class)| (features, *class)).collect();
    (!rows.is_empty()).then(|| gpumemnet::train(architecture, classes, &rows, seed, Schedule::default(), trained))
}

fn file_of(family: Family, architecture: Architecture) -> String {
    let architecture = match architecture {
        Architecture::Mlp => "mlp",
        Architecture::Transformer => "transformer",
    };
    format!("gpumemnet_{family}_by_{architecture}.json")
}
