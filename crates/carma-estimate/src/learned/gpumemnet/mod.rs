//! `GPUMemNet`: ensembles of small classifiers that predict the memory class of a training run.

mod classes;
mod scaling;
mod weights;

pub use classes::{Classes, Prediction};
pub use scaling::{Scaling, logarithms};
pub use weights::WeightsError;

use super::features::{Features, KINDS};
use super::neural::{EncoderShape, Member, Token, Workspace};
use crate::family::Family;
use crate::model::Model;

/// Inputs of an ensemble's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// Numbers of the whole network.
    Mlp,
    /// The same, and the layers as a sequence.
    Transformer,
}

/// An ensemble for one family of networks.
#[derive(Debug, Clone)]
pub struct GpuMemNet {
    family: Family,
    architecture: Architecture,
    classes: Classes,
    scaling: Scaling,
    members: Vec<Member>,
}

/// Encoders of the Transformer ensemble.
const ENCODERS: [EncoderShape; 2] = [
    EncoderShape { width: 6, layers: 3, feed_forward: 4, kinds: KINDS },
    EncoderShape { width: 4, layers: 2, feed_forward: 4, kinds: KINDS },
];

impl Architecture {
    /// Shapes of the members: an encoder, if any, and the depth of the stack. Encoders overfit to the layers: members without one balance
    /// them.
    pub fn members(self) -> Vec<(Option<EncoderShape>, i32)> {
        let plain = DEPTHS.map(|depth| (None, depth)).into_iter();
        match self {
            Self::Mlp => plain.collect(),
            Self::Transformer => ENCODERS.map(|encoder| (Some(encoder), 1)).into_iter().chain(plain).collect(),
        }
    }
}

/// Depths of the stacks. Shallow stacks predict better, so there are more of them; deep ones add variety.
const DEPTHS: [i32; 15] = [1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8];

/// Widths of a stack of this depth.
pub fn widths(depth: i32) -> Vec<usize> {
    (0..depth).map(|layer| ((8.0 * 0.5_f64.powi(layer)) as usize).max(4)).collect()
}

impl GpuMemNet {
    /// An ensemble of trained members.
    pub fn new(family: Family, architecture: Architecture, classes: Classes, scaling: Scaling, members: Vec<Member>) -> Self {
        Self { family, architecture, classes, scaling, members }
    }

    /// The family that it was trained for.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Inputs of its members.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Probability of each class.
    pub fn predict(&self, features: &Features) -> Prediction {
        self.predict_with(features, &mut Buffers::default())
    }

    /// The same with reusable buffers.
    pub fn predict_with(&self, features: &Features, buffers: &mut Buffers) -> Prediction {
        self.scaling.apply(features, &mut buffers.whole, &mut buffers.tokens);
        let mut sums = vec![0.0; self.classes.count];
        for member in &self.members {
            member.logits(&buffers.whole, &buffers.tokens, &mut buffers.work, &mut sums);
        }
        for sum in &mut sums {
            *sum /= self.members.len().max(1) as f32;
        }
        Prediction::of_logits(self.classes, sums)
    }

    /// Probability of each class for a model at a batch size.
    pub fn predict_model(&self, model: &Model, batch: u64) -> Prediction {
        self.predict(&Features::of(model, batch, self.family))
    }
}

/// Buffers of a prediction.
#[derive(Debug, Clone, Default)]
pub struct Buffers {
    whole: Vec<f32>,
    tokens: Vec<Token>,
    work: Workspace,
}
