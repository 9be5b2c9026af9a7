//! One layer: an operator, its inputs and its output.

use serde::{Deserialize, Serialize};

use super::{ElementType, LayerKind, Shape};

/// Source of a layer's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The model's input with this index.
    Input(usize),
    /// The output of the layer with this index.
    Layer(usize),
}

/// One operator of the forward pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name, unique within the model.
    pub name: String,
    /// Its class or function in the description, such as `Conv2d`.
    pub class: String,
    /// Its kind, for memory and compute.
    pub kind: LayerKind,
    /// Its inputs, in order.
    pub inputs: Vec<Source>,
    /// Shape of its output.
    pub output: Shape,
    /// Element type of the output; `None` is the training precision.
    pub element: Option<ElementType>,
    /// Its own trainable parameters (a shared tensor counts only at its first layer).
    pub parameters: u64,
    /// Elements of each parameter tensor, largest first, if known; their sum is `parameters`.
    pub tensors: Vec<u64>,
    /// Whether it overwrites its first input.
    pub in_place: bool,
    /// The enclosing block, such as `layer1.0`, if known: the unit of gradient checkpointing.
    pub block: Option<String>,
}

impl Layer {
    /// A layer with these inputs and defaults for the rest.
    pub fn new(name: impl Into<String>, class: impl Into<String>, kind: LayerKind, inputs: Vec<Source>, output: Shape) -> Self {
        Self {
            name: name.into(),
            class: class.into(),
            kind,
            inputs,
            output,
            element: None,
            parameters: 0,
            tensors: Vec::new(),
            in_place: false,
            block: None,
        }
    }

    /// The layer with parameter tensors of these sizes.
    #[must_use]
    pub fn with_tensors(mut self, tensors: impl Into<Vec<u64>>) -> Self {
        self.tensors = tensors.into();
        self.tensors.retain(|&elements| elements > 0);
        self.parameters = self.tensors.iter().fold(0, |sum, &elements| u64::saturating_add(sum, elements));
        self
    }
}
