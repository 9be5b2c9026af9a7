//! Hidden layers of one width, trained on MNIST.

use crate::model::Model;

use super::ActivationFunction;
use super::build::Builder;

/// Hidden layers of one width, on images of handwritten digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FullyConnected {
    /// Neurons in a layer.
    pub neurons: u64,
    /// Hidden layers.
    pub layers: u64,
}

impl FullyConnected {
    /// An image of MNIST.
    pub const PIXELS: u64 = 28 * 28;
    /// Samples in a batch, in all rows of the table.
    pub const BATCH: u64 = 32;

    /// Its layers. The table does not name the activation: `ReLU` is assumed.
    pub fn build(&self) -> Model {
        let mut build = Builder::new(&[Self::PIXELS], None);
        for _ in 0..self.layers {
            build.linear(self.neurons);
            build.activation(ActivationFunction::ReLU);
        }
        build.linear(10);
        build.finish()
    }
}
