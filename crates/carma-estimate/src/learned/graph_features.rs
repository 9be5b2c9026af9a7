//! Features of a layer graph in training.

use crate::model::{Activation, LayerKind, Model, Normalisation, Reshaping, Source};
use crate::training::{Optimizer, Precision, Training};

/// Approximate MiB of a process before its first tensor: the context of the stack that was measured.
const CONTEXT: f64 = 1400.0;
const MIB: f64 = 1_048_576.0;

/// Groups of layers that are summed separately.
const GROUPS: [&str; 10] =
    ["linear", "convolution", "batch norm", "other norm", "keeps output", "keeps input", "dropout", "attention", "sum or join", "other"];

/// Features of the whole graph.
const WHOLE: [&str; 14] = [
    "batch",
    "plain count",
    "parameters",
    "largest layer's parameters",
    "activations",
    "largest output",
    "largest output and inputs",
    "widest convolution",
    "convolution workspace",
    "operations",
    "layers",
    "longest path",
    "most readers",
    "sequence",
];

/// Names of all features, in order.
pub const NAMES: [&str; WHOLE.len() + 2 * GROUPS.len()] = {
    let mut names = [""; WHOLE.len() + 2 * GROUPS.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = if place < WHOLE.len() { WHOLE[place] } else { GROUPS[(place - WHOLE.len()) % GROUPS.len()] };
        place += 1;
    }
    names
};

/// Features of a layer graph in training.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFeatures {
    /// A simple count in MiB: context, weights with gradients and moments, and every output once.
    pub plain: f64,
    /// Logarithms of sizes, and counts.
    pub values: Vec<f32>,
}

fn group(kind: &LayerKind) -> usize {
    match kind {
        LayerKind::Linear | LayerKind::Recurrent { .. } | LayerKind::MatrixProduct => 0,
        LayerKind::Convolution { .. } => 1,
        LayerKind::Normalisation(Normalisation::Batch) => 2,
        LayerKind::Normalisation(_) => 3,
        LayerKind::Activation(Activation::KeepsOutput) => 4,
        LayerKind::Activation(_) | LayerKind::Multiply => 5,
        LayerKind::Dropout { .. } => 6,
        LayerKind::Attention { .. } => 7,
        LayerKind::Add | LayerKind::Concatenate => 8,
        _ => 9,
    }
}

/// Bytes of a parameter with its gradient and optimizer state.
fn bytes_per_parameter(training: &Training) -> f64 {
    let weight = training.precision.weights().bytes() as f64;
    let state = match training.optimizer {
        Optimizer::None => return weight,
        Optimizer::Sgd | Optimizer::Adafactor => 0.0,
        Optimizer::Momentum | Optimizer::RmsProp | Optimizer::Adagrad | Optimizer::Lion => weight,
        Optimizer::Adam8bit => 2.0,
        Optimizer::Adam | Optimizer::AdamW | Optimizer::FusedAdam => 2.0 * weight,
    };
    2.0 * weight + state
}

impl GraphFeatures {
    /// Features of a model in training.
    pub fn of(model: &Model, training: &Training) -> Self {
        let batch = training.batch.max(1);
        let element = if training.precision == Precision::Float32 { 4.0 } else { 2.0 };
        let elements = |source: &Source| match source {
            Source::Input(place) => model.inputs.get(*place).map_or(0, |input| input.shape.elements(batch)),
            Source::Layer(place) => model.layers.get(*place).map_or(0, |layer| layer.output.elements(batch)),
        };
        let (mut counts, mut sizes) = ([0.0_f64; GROUPS.len()], [0.0_f64; GROUPS.len()]);
        let (mut largest, mut with_inputs, mut widest, mut workspace, mut operations) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        let mut depths: Vec<u32> = Vec::with_capacity(model.layers.len());
        let mut readers = vec![0_u32; model.layers.len()];
        for layer in &model.layers {
            let output = layer.output.elements(batch) as f64;
            let inputs: f64 = layer.inputs.iter().map(|source| elements(source) as f64).sum();
            let group = group(&layer.kind);
            counts[group] += 1.0;
            if layer.kind != LayerKind::Reshape(Reshaping::View) {
                sizes[group] += output;
            }
            largest = largest.max(output);
            with_inputs = with_inputs.max(output + inputs);
            if let LayerKind::Convolution { kernel, .. } = layer.kind {
                let channels = layer.output.image().map_or(0, |[channels, ..]| channels);
                widest = widest.max(channels as f64);
                if kernel != [1, 1] {
                    workspace = workspace.max(output.max(inputs));
                }
            }
            operations += match layer.kind {
                // Each weight is used once per position of the output.
                LayerKind::Linear | LayerKind::Convolution { .. } => {
                    let features = layer.output.image().map_or(layer.output.features(), |[channels, ..]| channels);
                    layer.parameters as f64 * output / features.max(1) as f64
                }
                _ => output,
            };
            let mut depth = 0;
            for source in &layer.inputs {
                if let Source::Layer(place) = source {
                    depth = depth.max(depths.get(*place).copied().unwrap_or(0));
                    if let Some(count) = readers.get_mut(*place) {
                        *count += 1;
                    }
                }
            }
            depths.push(depth + 1);
        }
        let activations: f64 = sizes.iter().sum();
        let parameters = model.parameters() as f64;
        let most = model.layers.iter().map(|layer| layer.parameters).max().unwrap_or(0) as f64;
        let plain = CONTEXT + (bytes_per_parameter(training) * parameters + element * activations) / MIB;
        let path = f64::from(depths.iter().copied().max().unwrap_or(0));
        let branches = f64::from(readers.iter().copied().max().unwrap_or(0));
        let sequence = training.sequence.unwrap_or(0) as f64;
        let whole: [f64; WHOLE.len()] = [
            batch as f64,
            plain,
            parameters,
            most,
            activations,
            largest,
            with_inputs,
            widest,
            workspace,
            operations,
            model.layers.len() as f64,
            path,
            branches,
            sequence,
        ];
        let logarithms = whole.iter().chain(&sizes).map(|number| number.ln_1p() as f32);
        Self { plain, values: logarithms.chain(counts.iter().map(|count| *count as f32)).collect() }
    }
}
