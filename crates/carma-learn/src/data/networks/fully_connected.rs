//! Hidden layers of one width, trained on MNIST.

use carma_estimate::model::Model;

use super::build::Builder;
use carma_estimate::learned::ActivationFunction;

/// Hidden layers of one width, on images of handwritten digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FullyConnected {
    /// Neurons per layer.
    pub neurons: u64,
    /// Number of hidden layers.
    pub layers: u64,
}

impl FullyConnected {
    /// Pixels of an MNIST image.
    pub const PIXELS: u64 = 28 * 28;
    /// Batch size, in all rows of the table.
    pub const BATCH: u64 = 32;

    /// Builds its layers. The table does not state the activation: `ReLU` is assumed.
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
