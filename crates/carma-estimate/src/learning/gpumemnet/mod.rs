//! `GPUMemNet`: ensembles of small classifiers that tell in which class of memory a training run falls.

mod classes;
mod scaling;

pub use classes::{Classes, Prediction};

use crate::data::{Family, Observation};
use crate::learning::features::{Features, KINDS};
use crate::learning::neural::{EncoderShape, Member, Sample, Schedule, Token, Workspace, train_member};
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
    encoders: Vec<Member>,
    /// Means and scales of what the encoders make.
    pooled: Vec<(f32, f32)>,
    heads: Vec<Member>,
}

/// Encoders of the Transformer ensemble.
const ENCODERS: [EncoderShape; 2] = [
    EncoderShape { width: 6, layers: 3, feed_forward: 4, kinds: KINDS },
    EncoderShape { width: 4, layers: 2, feed_forward: 4, kinds: KINDS },
];

impl Architecture {
    /// What reads the layers before the heads do.
    fn encoders(self) -> &'static [EncoderShape] {
        match self {
            Self::Mlp => &[],
            Self::Transformer => &ENCODERS,
        }
    }
}

/// Depths of the heads, the shallow ones more often: they do better, the deep ones differ more.
const DEPTHS: [i32; 15] = [1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8];

/// Widths of a head of this depth.
fn widths(depth: i32) -> Vec<usize> {
    (0..depth).map(|layer| ((8.0 * 0.5_f64.powi(layer)) as usize).max(4)).collect()
}

impl GpuMemNet {
    /// Trains an ensemble on features and their classes. The same seed gives the same weights, whatever the number of threads.
    pub fn train(architecture: Architecture, classes: Classes, rows: &[(&Features, usize)], seed: u64) -> Self {
        Self::train_for(architecture, classes, rows, seed, Schedule::default())
    }

    pub(crate) fn train_for(
        architecture: Architecture,
        classes: Classes,
        rows: &[(&Features, usize)],
        seed: u64,
        schedule: Schedule,
    ) -> Self {
        let scaling = Scaling::of(rows.iter().map(|(features, _)| *features));
        let weights = classes.weights(rows.iter().map(|(_, class)| *class));
        let samples = rows.iter().map(|(features, class)| {
            let class = (*class).min(classes.count - 1);
            let mut sample = Sample { whole: Vec::new(), tokens: Vec::new(), class, weight: weights[class] };
            scaling.apply(features, &mut sample.whole, &mut sample.tokens);
            sample
        });
        let mut samples: Vec<Sample> = samples.collect();
        let width = |samples: &[Sample]| samples.first().map_or(0, |sample| sample.whole.len());
        let seed_of = |turn: usize| seed.wrapping_mul(1009).wrapping_add(turn as u64);
        // Encoders learn with a head of their own, which is then left behind.
        let shapes: Vec<_> = architecture.encoders().iter().enumerate().collect();
        let encoders = on_all_cores(&shapes, |(turn, shape)| {
            let member = Member::new(width(&samples), Some(**shape), &widths(2), classes.count);
            train_member(member, &samples, schedule, seed_of(100 + turn))
        });
        let mut work = Workspace::default();
        let mut sums: Vec<Vec<f32>> = Vec::with_capacity(samples.len());
        for sample in &samples {
            sums.push(read_all(&encoders, &sample.tokens, &mut work));
        }
        let pooled = scaling::columns(&sums);
        for (sample, sums) in samples.iter_mut().zip(&sums) {
            scaling::append(&mut sample.whole, sums, &pooled);
        }
        let depths: Vec<_> = DEPTHS.into_iter().enumerate().collect();
        let heads = on_all_cores(&depths, |(turn, depth)| {
            train_member(Member::new(width(&samples), None, &widths(*depth), classes.count), &samples, schedule, seed_of(*turn))
        });
        let family = rows.first().map_or(Family::Mlp, |(features, _)| features.family);
        Self { family, architecture, classes, scaling, encoders, pooled, heads }
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
        self.encoders.iter().chain(&self.heads).map(|member| member.parameters.len()).sum()
    }

    /// How likely each class is.
    pub fn predict(&self, features: &Features) -> Prediction {
        self.predict_with(features, &mut Memory::default())
    }

    /// The same with buffers kept from one call to the next.
    pub fn predict_with(&self, features: &Features, memory: &mut Memory) -> Prediction {
        self.scaling.apply(features, &mut memory.whole, &mut memory.tokens);
        let mut sums = vec![0.0; self.classes.count];
        let pooled = read_all(&self.encoders, &memory.tokens, &mut memory.work);
        scaling::append(&mut memory.whole, &pooled, &self.pooled);
        for head in &self.heads {
            head.logits(&memory.whole, &[], &mut memory.work, &mut sums);
        }
        for sum in &mut sums {
            *sum /= self.heads.len().max(1) as f32;
        }
        Prediction::of_logits(self.classes, sums)
    }

    /// How likely each class is for a model at a batch size.
    pub fn predict_model(&self, model: &Model, batch: u64) -> Prediction {
        self.predict(&Features::of(model, batch, self.family))
    }
}

/// What all encoders make of the tokens.
fn read_all(encoders: &[Member], tokens: &[Token], work: &mut Workspace) -> Vec<f32> {
    let mut sums = Vec::new();
    for encoder in encoders {
        encoder.read(tokens, work, &mut sums);
    }
    sums
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
