//! A model as a list of layers with shapes and edges, independent of the format of its description.

mod kind;
mod layer;
mod shape;

pub use kind::{Activation, LayerKind, Normalisation, Reshaping};
pub use layer::{Layer, Source};
pub use shape::{ElementType, Shape};

use serde::{Deserialize, Serialize};

/// A model: its layers in order of execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in the description.
    pub name: Option<String>,
    /// One tensor for each input of the model, in order.
    pub inputs: Vec<Tensor>,
    /// The layers, in order of execution; edges only point backwards.
    pub layers: Vec<Layer>,
    /// Total of trainable parameters in the description, if stated.
    pub stated_parameters: Option<u64>,
    /// Batch size in the description, if stated.
    pub stated_batch: Option<u64>,
}

/// The shape of a tensor and the type of its elements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// Its dimensions.
    pub shape: Shape,
    /// Element type; `None` is the training precision.
    pub element: Option<ElementType>,
}

impl Model {
    /// Trainable parameters of all layers, each counted once.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Elements of all layers' outputs for one sample: the model's activations.
    pub fn activations(&self) -> u64 {
        self.layers.iter().map(|layer| layer.output.per_sample()).sum()
    }

    /// Class names of layers of unknown kind, each once, in order of appearance.
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
