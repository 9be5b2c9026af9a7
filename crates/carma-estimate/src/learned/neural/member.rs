//! One network of an ensemble: an optional encoder over tokens, joined with features of the whole model, and a stack that predicts classes.

use super::encoder::{Encoder, EncoderPass, EncoderShape, Token};
use super::stack::{Map, Stack};

/// One network of an ensemble.
#[derive(Debug, Clone)]
pub struct Member {
    /// Encoder over the tokens, if any.
    pub encoder: Option<Encoder>,
    /// The stack that predicts classes.
    pub stack: Stack,
    /// Features of the whole model.
    pub features: usize,
    /// Number of classes.
    pub classes: usize,
    /// All trained parameters.
    pub parameters: Vec<f32>,
    /// Running statistics.
    pub state: Vec<f32>,
    maps: Vec<Map>,
}

/// Buffers of a forward pass, reused between calls.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    encoder: EncoderPass,
    values: (Vec<f32>, Vec<f32>),
}

impl Member {
    /// A network with all parameters zero.
    pub fn new(features: usize, encoder: Option<EncoderShape>, widths: &[usize], classes: usize) -> Self {
        let (mut next, mut state) = (0, 0);
        let encoder = encoder.map(|shape| Encoder::new(shape, &mut next));
        let inputs = features + encoder.as_ref().map_or(0, |encoder| encoder.shape.width);
        let stack = Stack::new(inputs, widths, classes, &mut next, &mut state);
        Self { encoder, stack, features, classes, parameters: vec![0.0; next], state: vec![0.0; state], maps: Vec::new() }
    }

    /// Sizes of its encoder, if any.
    pub fn encoder_shape(&self) -> Option<EncoderShape> {
        self.encoder.as_ref().map(|encoder| encoder.shape)
    }

    /// Hidden layers of its stack.
    pub fn depth(&self) -> i32 {
        self.stack.depth()
    }

    /// Must be called after the parameters have changed, before [`logits`](Self::logits).
    pub fn ready(&mut self) {
        self.maps = self.stack.folded(&self.parameters, &self.state);
    }

    /// Appends the encoder's sums over one sample's tokens; nothing without an encoder.
    fn encode(&self, tokens: &[Token], work: &mut Workspace, pooled: &mut Vec<f32>) {
        if let Some(encoder) = &self.encoder {
            let before = pooled.len();
            pooled.resize(before + encoder.shape.width, 0.0);
            work.encoder.load(std::iter::once(tokens));
            encoder.forward(&self.parameters, &mut work.encoder, &mut pooled[before..], 1);
        }
    }

    /// Adds the logits of one sample to `sums`.
    pub fn logits(&self, whole: &[f32], tokens: &[Token], work: &mut Workspace, sums: &mut [f32]) {
        let mut values = std::mem::take(&mut work.values.0);
        values.clear();
        self.encode(tokens, work, &mut values);
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
