//! The networks of the published tables. Each can be built into a model.

mod activation;
mod build;
mod cnn;
mod fully_connected;
mod mlp;
mod transformer;

pub use cnn::{Cnn, CnnShape};
pub use fully_connected::FullyConnected;
pub use mlp::{Mlp, MlpShape};
pub use transformer::Transformer;

use carma_estimate::model::Model;

/// A trained network.
#[derive(Debug, Clone, PartialEq)]
pub enum Network {
    /// A random network of fully connected layers.
    Mlp(Mlp),
    /// A random convolutional network.
    Cnn(Cnn),
    /// A random encoder with attention.
    Transformer(Transformer),
    /// Hidden layers of one width, on MNIST.
    FullyConnected(FullyConnected),
    /// A model of the TIMM library.
    Timm {
        /// Its name in the library.
        model: String,
    },
    /// A model in practical use.
    Real {
        /// The training task.
        task: String,
        /// The model's name.
        model: String,
        /// GPUs it was trained on.
        gpus: u64,
        /// Peak memory in MiB on an earlier software stack; not comparable with the current one.
        earlier: Option<f64>,
    },
    /// A model of xMem's set: torchvision's or Hugging Face's, on a named GPU, measured without the CUDA context.
    Xmem {
        /// The model's name.
        model: String,
        /// The optimizer's class in PyTorch.
        optimizer: String,
        /// The GPU's name.
        gpu: String,
    },
}

impl Network {
    /// Builds its layers, if the description is sufficient.
    pub fn build(&self) -> Option<Model> {
        match self {
            Self::Mlp(network) => Some(network.build()),
            Self::Cnn(network) => Some(network.build()),
            Self::Transformer(network) => Some(network.build()),
            Self::FullyConnected(network) => Some(network.build()),
            Self::Timm { .. } | Self::Real { .. } | Self::Xmem { .. } => None,
        }
    }

    /// Shape of one sample, if known.
    pub fn input(&self) -> Option<Vec<u64>> {
        match self {
            Self::Mlp(network) => Some(vec![network.input]),
            Self::Cnn(network) => Some(vec![network.channels, network.size, network.size]),
            Self::Transformer(network) => Some(vec![network.sequence]),
            Self::FullyConnected(_) => Some(vec![FullyConnected::PIXELS]),
            Self::Timm { .. } | Self::Real { .. } | Self::Xmem { .. } => None,
        }
    }
}
