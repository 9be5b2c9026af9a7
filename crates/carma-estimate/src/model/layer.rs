//! One layer: an operator, what it reads, and what it makes.

use serde::{Deserialize, Serialize};

use super::{ElementType, LayerKind, Shape};

/// Where a layer's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The model's own input of this number.
    Input(usize),
    /// The output of the layer at this position.
    Layer(usize),
}

/// One operator of the forward pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Unique name within the model.
    pub name: String,
    /// The class or function as the description writes it, such as `Conv2d`.
    pub class: String,
    /// What it does, as far as memory and compute are concerned.
    pub kind: LayerKind,
    /// What it reads, in order.
    pub inputs: Vec<Source>,
    /// Shape of its output.
    pub output: Shape,
    /// Type of the output's elements; `None` is the precision of the training.
    pub element: Option<ElementType>,
    /// Trainable parameters of its own (a shared tensor counts at its first user only).
    pub parameters: u64,
    /// Elements of each parameter tensor, largest first, where known; they add up to `parameters`.
    pub tensors: Vec<u64>,
    /// Whether it overwrites its first input.
    pub in_place: bool,
    /// The enclosing block, such as `layer1.0`, where known: the unit of gradient checkpointing.
    pub block: Option<String>,
}

impl Layer {
    /// A layer that reads the given sources; everything else as if absent.
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

    /// The same with parameter tensors of these sizes.
    #[must_use]
    pub fn with_tensors(mut self, tensors: impl Into<Vec<u64>>) -> Self {
        self.tensors = tensors.into();
        self.tensors.retain(|&elements| elements > 0);
        self.parameters = self.tensors.iter().fold(0, |sum, &elements| u64::saturating_add(sum, elements));
        self
    }
}
