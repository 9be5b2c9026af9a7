//! One network of an ensemble: an encoder over tokens, if any, joined with features of the whole, and a stack that tells classes.

use super::encoder::{Encoder, EncoderPass, EncoderShape, Token};
use super::lanes::{exp, padded};
use super::stack::{Map, Stack, StackPass};

/// What a network is told of one sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// Features of the whole, scaled.
    pub(crate) whole: Vec<f32>,
    /// Its layers, scaled; empty where only the whole counts.
    pub(crate) tokens: Vec<Token>,
    /// What it should be told to be.
    pub(crate) class: usize,
    /// How much it counts; one on average.
    pub(crate) weight: f32,
}

/// One network of an ensemble.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    encoder: Option<(Encoder, usize)>,
    stack: Stack,
    features: usize,
    classes: usize,
    /// Everything that is learned.
    pub(crate) parameters: Vec<f32>,
    /// Running statistics.
    pub(crate) state: Vec<f32>,
    maps: Vec<Map>,
}

/// Buffers of a forward pass and a backward pass, kept from one to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workspace {
    encoder: EncoderPass,
    stack: StackPass,
    inputs: Vec<f32>,
    slopes: Vec<f32>,
    probabilities: Vec<f32>,
    values: (Vec<f32>, Vec<f32>),
}

impl Member {
    /// A network with all parameters zero.
    pub(crate) fn new(features: usize, encoder: Option<EncoderShape>, widths: &[usize], classes: usize) -> Self {
        let (mut next, mut state) = (0, 0);
        let encoder = encoder.map(|shape| (Encoder::new(shape, &mut next), shape.width));
        let inputs = features + encoder.as_ref().map_or(0, |(_, width)| *width);
        let stack = Stack::new(inputs, widths, classes, &mut next, &mut state);
        Self { encoder, stack, features, classes, parameters: vec![0.0; next], state: vec![0.0; state], maps: Vec::new() }
    }

    /// Sizes of its encoder, if any.
    pub(crate) fn encoder_shape(&self) -> Option<EncoderShape> {
        self.encoder.as_ref().map(|(encoder, _)| encoder.shape())
    }

    /// Layers of its stack, but the last.
    pub(crate) fn depth(&self) -> i32 {
        self.stack.depth()
    }

    /// Classes that it tells.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// Parameters drawn at random.
    pub(crate) fn draw(&mut self, random: &mut fastrand::Rng) {
        if let Some((encoder, _)) = &self.encoder {
            encoder.draw(&mut self.parameters, random);
        }
        self.stack.draw(&mut self.parameters, &mut self.state, random);
    }

    /// To be called when the parameters have changed, before any [`logits`](Self::logits).
    pub(crate) fn ready(&mut self) {
        self.maps = self.stack.folded(&self.parameters, &self.state);
    }

    /// Mean cross-entropy of a batch; adds its gradient.
    pub(crate) fn loss(&mut self, samples: &[&Sample], work: &mut Workspace, gradient: &mut [f32]) -> f32 {
        let (real, length) = (samples.len(), padded(samples.len()));
        let pooled = self.encoder.as_ref().map_or(0, |(_, width)| *width);
        work.inputs.clear();
        work.inputs.resize((pooled + self.features) * length, 0.0);
        if let Some((encoder, width)) = &self.encoder {
            work.encoder.load(samples.iter().map(|sample| sample.tokens.as_slice()));
            encoder.forward(&self.parameters, &mut work.encoder, &mut work.inputs[..width * length], length);
        }
        for (place, sample) in samples.iter().enumerate() {
            for (feature, value) in sample.whole.iter().enumerate() {
                work.inputs[(pooled + feature) * length + place] = *value;
            }
        }
        self.stack.forward((&self.parameters, &mut self.state), &work.inputs, (real, length), &mut work.stack);
        work.probabilities.clear();
        work.probabilities.resize(self.classes * length, 0.0);
        let mut loss = 0.0;
        for (place, sample) in samples.iter().enumerate() {
            let logit = |class: usize| work.stack.logits[class * length + place];
            let most = (0..self.classes).map(logit).fold(f32::MIN, f32::max);
            let total: f32 = (0..self.classes).map(|class| exp(logit(class) - most)).sum();
            for class in 0..self.classes {
                let share = exp(logit(class) - most) / total;
                let wanted = if class == sample.class { 1.0 } else { 0.0 };
                work.probabilities[class * length + place] = sample.weight * (share - wanted) / real as f32;
            }
            loss += sample.weight * (most + total.ln() - logit(sample.class)) / real as f32;
        }
        work.slopes.resize(pooled * length, 0.0);
        let slopes = (work.inputs.as_slice(), work.probabilities.as_slice());
        self.stack.backward(&self.parameters, slopes, (real, length), &mut work.stack, (gradient, &mut work.slopes));
        if let Some((encoder, _)) = &self.encoder {
            encoder.backward(&self.parameters, &mut work.encoder, &work.slopes, length, gradient);
        }
        loss
    }

    /// Appends the encoder's sums over one trained sample's tokens; nothing where there is no encoder.
    pub(crate) fn read(&self, tokens: &[Token], work: &mut Workspace, pooled: &mut Vec<f32>) {
        if let Some((encoder, width)) = &self.encoder {
            let before = pooled.len();
            pooled.resize(before + width, 0.0);
            work.encoder.load(std::iter::once(tokens));
            encoder.forward(&self.parameters, &mut work.encoder, &mut pooled[before..], 1);
        }
    }

    /// Adds one trained sample's classes, before they become probabilities, to `sums`.
    pub(crate) fn logits(&self, whole: &[f32], tokens: &[Token], work: &mut Workspace, sums: &mut [f32]) {
        let mut values = std::mem::take(&mut work.values.0);
        values.clear();
        self.read(tokens, work, &mut values);
        values.extend_from_slice(whole);
        let others = &mut work.values.1;
        for (place, map) in self.maps.iter().enumerate() {
            map.apply(&values, others);
            if place + 1 < self.maps.len() {
                for value in others.iter_mut() {
                    *value = value.max(0.0);
                }
            }
            std::mem::swap(&mut values, others);
        }
        sums.iter_mut().zip(values.iter()).for_each(|(sum, value)| *sum += value);
        work.values.0 = values;
    }
}
