//! A model as a list of layers with shapes and edges, whatever it was described in.

mod kind;
mod layer;
mod shape;

pub use kind::{Activation, LayerKind, Normalisation, Reshaping};
pub use layer::{Layer, Source};
pub use shape::{ElementType, Shape};

use serde::{Deserialize, Serialize};

/// Layers in the order in which the forward pass runs them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// What the description calls it.
    pub name: Option<String>,
    /// One tensor for each input of the model, in order.
    pub inputs: Vec<Tensor>,
    /// The layers, in order of execution; an edge points backwards only.
    pub layers: Vec<Layer>,
    /// Trainable parameters that the description states in total, where it does.
    pub stated_parameters: Option<u64>,
    /// Batch size that the description states, where it does.
    pub stated_batch: Option<u64>,
}

/// The shape of a tensor and the type of its elements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// Its dimensions.
    pub shape: Shape,
    /// What an element is; `None` is the precision of the training.
    pub element: Option<ElementType>,
}

impl Model {
    /// Trainable parameters of all layers, each counted once.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Elements of all layers' outputs for one sample: what the field calls a model's activations.
    pub fn activations(&self) -> u64 {
        self.layers.iter().map(|layer| layer.output.per_sample()).sum()
    }

    /// Class names of layers whose memory behaviour is not known, each once, in order of appearance.
    pub fn unknown_layers(&self) -> Vec<&str> {
        let mut unknown: Vec<&str> = Vec::new();
        for layer in &self.layers {
            if layer.kind == LayerKind::Unknown && !unknown.contains(&layer.class.as_str()) {
                unknown.push(&layer.class);
            }
        }
        unknown
    }
}
