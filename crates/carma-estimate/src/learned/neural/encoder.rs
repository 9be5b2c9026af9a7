//! An encoder over a set of tokens: embedding, layers of attention and feed-forward, and the sum of the outputs.

use super::attention::{Attention, Segment};
use super::dense::Dense;
use super::lanes::padded;
use super::normalisation::{LayerNorm, Normalised};

/// Scale that keeps sums over a hundred tokens near one.
pub const POOLING: f32 = 1.0 / 32.0;
/// Attention weight of padding, as a logarithm.
const PADDING: f32 = -1e30;

/// A layer of a network as a token. There are no positions: equal layers are one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Token {
    /// Index of its kind.
    pub kind: usize,
    /// Features.
    pub features: [f32; 2],
    /// Number of equal layers.
    pub count: f32,
}

/// Sizes of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderShape {
    /// Width of a token inside.
    pub width: usize,
    /// Layers.
    pub layers: usize,
    /// Width inside feed-forward blocks.
    pub feed_forward: usize,
    /// Kinds of tokens.
    pub kinds: usize,
}

/// One layer of an encoder.
#[derive(Debug, Clone, Copy)]
pub struct EncoderLayer {
    /// To query, key and value.
    pub project: Dense,
    /// After the attention.
    pub join: Dense,
    /// Normalisation after the attention.
    pub first: LayerNorm,
    /// Into the feed-forward block.
    pub widen: Dense,
    /// Out of the feed-forward block.
    pub narrow: Dense,
    /// Normalisation after the feed-forward block.
    pub second: LayerNorm,
}

/// Layout of an encoder's parameters.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// Sizes.
    pub shape: EncoderShape,
    /// Index of the first parameter of the kinds' embeddings.
    pub kinds: usize,
    /// Embedding of a token's features.
    pub embed: Dense,
    /// The layers.
    pub layers: Vec<EncoderLayer>,
}

/// The tokens of a batch, side by side, and the activations of a forward pass.
#[derive(Debug, Clone, Default)]
pub struct EncoderPass {
    /// Tokens of the batch, with padding.
    pub length: usize,
    /// The tokens of each sample.
    pub segments: Vec<Segment>,
    /// Kind of each token.
    pub kinds: Vec<usize>,
    /// Two rows of features.
    pub features: Vec<f32>,
    /// Count of each token.
    pub counts: Vec<f32>,
    /// Activations of each layer.
    pub layers: Vec<LayerPass>,
    logarithms: Vec<f32>,
    output: Vec<f32>,
    scratch: Vec<f32>,
}

/// Activations of one layer.
#[derive(Debug, Clone, Default)]
pub struct LayerPass {
    /// Input of the layer.
    pub input: Vec<f32>,
    /// Query, key and value.
    pub projected: Vec<f32>,
    /// Attention weights; not kept for a single sample.
    pub weights: Vec<f32>,
    /// Values mixed by the weights.
    pub mixed: Vec<f32>,
    /// First normalisation.
    pub first: Normalised,
    /// Input of the feed-forward block.
    pub middle: Vec<f32>,
    /// Inside the feed-forward block.
    pub hidden: Vec<f32>,
    /// Second normalisation.
    pub second: Normalised,
}

impl Encoder {
    /// Takes the next parameters, from `next` on.
    pub fn new(shape: EncoderShape, next: &mut usize) -> Self {
        let EncoderShape { width, layers, feed_forward, .. } = shape;
        let kinds = *next;
        *next += shape.kinds * width;
        let embed = Dense::new(2, width, next);
        let layer = |_| EncoderLayer {
            project: Dense::new(width, 3 * width, next),
            join: Dense::new(width, width, next),
            first: LayerNorm::new(width, next),
            widen: Dense::new(width, feed_forward, next),
            narrow: Dense::new(feed_forward, width, next),
            second: LayerNorm::new(width, next),
        };
        Self { shape, kinds, embed, layers: (0..layers).map(layer).collect() }
    }

    /// Sums over each sample's tokens: `width` rows of `samples`. A single sample is never trained on, so its attention weights are not kept.
    pub fn forward(&self, parameters: &[f32], pass: &mut EncoderPass, pooled: &mut [f32], samples: usize) {
        let (width, length) = (self.shape.width, pass.length);
        pass.layers.resize_with(self.layers.len(), LayerPass::default);
        pass.output.resize(width * length, 0.0);
        self.embed.forward(parameters, &pass.features, length, &mut pass.output);
        for (token, kind) in pass.kinds.iter().enumerate() {
            for feature in 0..width {
                pass.output[feature * length + token] += parameters[self.kinds + kind * width + feature];
            }
        }
        let weights = pass.segments.last().map_or(0, |segment| segment.weights + segment.real * segment.padded);
        for (layer, at) in self.layers.iter().zip(&mut pass.layers) {
            std::mem::swap(&mut at.input, &mut pass.output);
            at.projected.resize(3 * width * length, 0.0);
            layer.project.forward(parameters, &at.input, length, &mut at.projected);
            // Padding stays zero.
            at.mixed.clear();
            at.mixed.resize(width * length, 0.0);
            let attention = Attention { width, length };
            match (samples, width, pass.segments.first()) {
                (1, 6, Some(one)) => attention.mix::<6>(&at.projected, &pass.logarithms, one.real, &mut pass.scratch, &mut at.mixed),
                (1, 4, Some(one)) => attention.mix::<4>(&at.projected, &pass.logarithms, one.real, &mut pass.scratch, &mut at.mixed),
                _ => {
                    at.weights.resize(weights, 0.0);
                    attention.forward(&at.projected, &pass.logarithms, &pass.segments, &mut at.weights, &mut at.mixed);
                }
            }
            at.middle.resize(width * length, 0.0);
            layer.join.forward(parameters, &at.mixed, length, &mut at.middle);
            add(&mut at.middle, &at.input);
            layer.first.forward(parameters, &mut at.middle, length, &mut at.first);
            at.hidden.resize(self.shape.feed_forward * length, 0.0);
            layer.widen.forward(parameters, &at.middle, length, &mut at.hidden);
            for value in &mut at.hidden {
                *value = value.max(0.0);
            }
            pass.output.resize(width * length, 0.0);
            layer.narrow.forward(parameters, &at.hidden, length, &mut pass.output);
            add(&mut pass.output, &at.middle);
            layer.second.forward(parameters, &mut pass.output, length, &mut at.second);
        }
        for (row, sums) in pass.output.chunks_exact(length).zip(pooled.chunks_exact_mut(samples)) {
            for (segment, total) in pass.segments.iter().zip(sums) {
                let tokens = segment.start..segment.start + segment.padded;
                *total = POOLING * super::lanes::dot(&row[tokens.clone()], &pass.counts[tokens]);
            }
        }
    }
}

impl EncoderPass {
    /// Places the tokens of all samples side by side.
    pub fn load<'a>(&mut self, samples: impl Iterator<Item = &'a [Token]> + Clone) {
        self.segments.clear();
        let (mut start, mut weights) = (0, 0);
        for tokens in samples.clone() {
            let (real, padded) = (tokens.len(), padded(tokens.len()));
            self.segments.push(Segment { start, real, padded, weights });
            start += padded;
            weights += real * padded;
        }
        self.length = start;
        self.kinds.clear();
        self.kinds.resize(start, 0);
        for values in [&mut self.counts, &mut self.features] {
            values.clear();
        }
        self.counts.resize(start, 0.0);
        self.features.resize(2 * start, 0.0);
        self.logarithms.clear();
        self.logarithms.resize(start, PADDING);
        for (tokens, segment) in samples.zip(&self.segments) {
            for (token, at) in tokens.iter().zip(segment.start..) {
                self.kinds[at] = token.kind;
                self.features[at] = token.features[0];
                self.features[start + at] = token.features[1];
                self.counts[at] = token.count;
                // Most counts are one, and a logarithm takes time.
                self.logarithms[at] = if token.count > 1.0 { token.count.ln() } else { 0.0 };
            }
        }
    }
}

fn add(sums: &mut [f32], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}
