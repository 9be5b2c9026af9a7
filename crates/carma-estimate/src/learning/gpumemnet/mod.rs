//! `GPUMemNet`: ensembles of small classifiers that tell in which class of memory a training run falls.

mod classes;
mod scaling;
mod weights;

pub use classes::{Classes, Prediction};
pub use weights::WeightsError;

pub use crate::learning::neural::Schedule;

use crate::data::{Family, Observation};
use crate::learning::features::{Features, KINDS};
use crate::learning::neural::{EncoderShape, Member, Sample, Token, Workspace, train_member};
use crate::learning::on_all_cores;
use crate::model::Model;
use scaling::Scaling;

/// What the members of an ensemble look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// Numbers of the whole network.
    Mlp,
    /// These, and its layers as a sequence.
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
    /// Untrained members: an encoder, if any, and the depth of the stack. Encoders read the layers too well to be left alone: stacks that see
    /// only the whole keep them honest.
    pub(crate) fn members(self) -> Vec<(Option<EncoderShape>, i32)> {
        let plain = DEPTHS.map(|depth| (None, depth)).into_iter();
        match self {
            Self::Mlp => plain.collect(),
            Self::Transformer => ENCODERS.map(|encoder| (Some(encoder), 1)).into_iter().chain(plain).collect(),
        }
    }
}

/// Depths of stacks, the shallow ones more often: they do better, the deep ones differ more.
const DEPTHS: [i32; 15] = [1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8];

/// Widths of a stack of this depth.
fn widths(depth: i32) -> Vec<usize> {
    (0..depth).map(|layer| ((8.0 * 0.5_f64.powi(layer)) as usize).max(4)).collect()
}

impl GpuMemNet {
    /// Trains an ensemble on features and their classes. The same seed gives the same weights, whatever the number of threads.
    pub fn train(architecture: Architecture, classes: Classes, rows: &[(&Features, usize)], seed: u64) -> Self {
        Self::train_watched(architecture, classes, rows, seed, &|| ())
    }

    /// The same; whoever watches is told of each member that is trained.
    pub fn train_watched(
        architecture: Architecture,
        classes: Classes,
        rows: &[(&Features, usize)],
        seed: u64,
        trained: &(dyn Fn() + Sync),
    ) -> Self {
        Self::train_members(architecture, classes, rows, seed, Schedule::default(), trained)
    }

    /// The same, for longer or shorter.
    pub fn train_for(architecture: Architecture, classes: Classes, rows: &[(&Features, usize)], seed: u64, schedule: Schedule) -> Self {
        Self::train_members(architecture, classes, rows, seed, schedule, &|| ())
    }

    fn train_members(
        architecture: Architecture,
        classes: Classes,
        rows: &[(&Features, usize)],
        seed: u64,
        schedule: Schedule,
        trained: &(dyn Fn() + Sync),
    ) -> Self {
        let scaling = Scaling::of(rows.iter().map(|(features, _)| *features));
        let weights = classes.weights(rows.iter().map(|(_, class)| *class));
        let samples = rows.iter().map(|(features, class)| {
            let class = (*class).min(classes.count - 1);
            let mut sample = Sample { whole: Vec::new(), tokens: Vec::new(), class, weight: weights[class] };
            scaling.apply(features, &mut sample.whole, &mut sample.tokens);
            sample
        });
        let samples: Vec<Sample> = samples.collect();
        let width = samples.first().map_or(0, |sample| sample.whole.len());
        let shapes: Vec<_> = architecture.members().into_iter().enumerate().collect();
        let members = on_all_cores(&shapes, |(turn, (encoder, depth))| {
            let member = Member::new(width, *encoder, &widths(*depth), classes.count);
            let member = train_member(member, &samples, schedule, seed.wrapping_mul(1009).wrapping_add(*turn as u64));
            trained();
            member
        });
        let family = rows.first().map_or(Family::Mlp, |(features, _)| features.family);
        Self { family, architecture, classes, scaling, members }
    }

    /// The family that it was trained for.
    pub fn family(&self) -> Family {
        self.family
    }

    /// What its members look at.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Everything that was learned, in numbers.
    pub fn parameters(&self) -> usize {
        self.members.iter().map(|member| member.parameters.len()).sum()
    }

    /// How likely each class is.
    pub fn predict(&self, features: &Features) -> Prediction {
        self.predict_with(features, &mut Memory::default())
    }

    /// The same with buffers kept from one call to the next.
    pub fn predict_with(&self, features: &Features, memory: &mut Memory) -> Prediction {
        self.scaling.apply(features, &mut memory.whole, &mut memory.tokens);
        let mut sums = vec![0.0; self.classes.count];
        for member in &self.members {
            member.logits(&memory.whole, &memory.tokens, &mut memory.work, &mut sums);
        }
        for sum in &mut sums {
            *sum /= self.members.len().max(1) as f32;
        }
        Prediction::of_logits(self.classes, sums)
    }

    /// How likely each class is for a model at a batch size.
    pub fn predict_model(&self, model: &Model, batch: u64) -> Prediction {
        self.predict(&Features::of(model, batch, self.family))
    }
}

/// Buffers of a prediction.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    whole: Vec<f32>,
    tokens: Vec<Token>,
    work: Workspace,
}

/// Features and class of each observation that has layers and a measured peak or a crash, with the observation.
pub fn labelled<'a>(observations: &'a [Observation], size: f64) -> Vec<(&'a Observation, Features, usize)> {
    let row = |observation: &'a Observation| {
        let class = Classes::of(size, 0).class(observation.measured, observation.crashed)?;
        let model = observation.model()?;
        let features = Features::of(&model, observation.batch, observation.family?);
        Some((observation, features, class))
    };
    observations.iter().filter_map(row).collect()
}
