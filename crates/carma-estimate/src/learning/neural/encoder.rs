//! An encoder over a set of tokens: embedding, layers of attention and feed-forward, and the sum of what comes out.

use super::attention::{Attention, Segment};
use super::dense::Dense;
use super::lanes::padded;
use super::normalisation::{LayerNorm, Normalised};

/// Keeps sums over a hundred tokens near one.
const POOLED: f32 = 1.0 / 32.0;
/// Weight of padding in attention, as a logarithm.
const NOTHING: f32 = -1e30;

/// A layer of a network as a token. There are no positions: equal ones stand together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: usize,
    /// Its features.
    pub(crate) features: [f32; 2],
    /// Equal ones it stands for.
    pub(crate) count: f32,
}

/// Sizes of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncoderShape {
    /// Width of a token inside.
    pub(crate) width: usize,
    /// Layers.
    pub(crate) layers: usize,
    /// Width inside feed-forward blocks.
    pub(crate) feed_forward: usize,
    /// Kinds of tokens.
    pub(crate) kinds: usize,
}

#[derive(Debug, Clone, Copy)]
struct EncoderLayer {
    project: Dense,
    join: Dense,
    first: LayerNorm,
    widen: Dense,
    narrow: Dense,
    second: LayerNorm,
}

/// Where an encoder's parameters stand.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    shape: EncoderShape,
    kinds: usize,
    embed: Dense,
    layers: Vec<EncoderLayer>,
}

/// The tokens of a batch, side by side, and all that is computed of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct EncoderPass {
    length: usize,
    segments: Vec<Segment>,
    kinds: Vec<usize>,
    features: Vec<f32>,
    counts: Vec<f32>,
    logarithms: Vec<f32>,
    layers: Vec<LayerPass>,
    output: Vec<f32>,
    slopes: Vec<f32>,
    others: Vec<f32>,
    wide: Vec<f32>,
    scratch: Vec<f32>,
}

#[derive(Debug, Clone, Default)]
struct LayerPass {
    input: Vec<f32>,
    projected: Vec<f32>,
    weights: Vec<f32>,
    mixed: Vec<f32>,
    first: Normalised,
    middle: Vec<f32>,
    hidden: Vec<f32>,
    second: Normalised,
}

impl Encoder {
    /// Takes the next parameters.
    pub(crate) fn new(shape: EncoderShape, next: &mut usize) -> Self {
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

    pub(crate) fn shape(&self) -> EncoderShape {
        self.shape
    }

    pub(crate) fn draw(&self, parameters: &mut [f32], random: &mut fastrand::Rng) {
        for parameter in &mut parameters[self.kinds..self.kinds + self.shape.kinds * self.shape.width] {
            *parameter = 2.0 * random.f32() - 1.0;
        }
        self.embed.draw(parameters, random);
        for layer in &self.layers {
            for dense in [layer.project, layer.join, layer.widen, layer.narrow] {
                dense.draw(parameters, random);
            }
            layer.first.begin(parameters);
            layer.second.begin(parameters);
        }
    }

    /// Sums over each sample's tokens: `width` rows of `samples`. A single sample is not learned from: less is kept of it.
    pub(crate) fn forward(&self, parameters: &[f32], pass: &mut EncoderPass, pooled: &mut [f32], samples: usize) {
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
            // Padding is mixed of nothing.
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
                *total = POOLED * super::lanes::dot(&row[tokens.clone()], &pass.counts[tokens]);
            }
        }
    }

    /// Adds to the gradients of the parameters, from those of the sums.
    pub(crate) fn backward(&self, parameters: &[f32], pass: &mut EncoderPass, pooled: &[f32], samples: usize, gradient: &mut [f32]) {
        let (width, length) = (self.shape.width, pass.length);
        let (slopes, others, wide) = (&mut pass.slopes, &mut pass.others, &mut pass.wide);
        slopes.resize(width * length, 0.0);
        for (row, sums) in slopes.chunks_exact_mut(length).zip(pooled.chunks_exact(samples)) {
            for (segment, slope) in pass.segments.iter().zip(sums) {
                let tokens = segment.start..segment.start + segment.padded;
                for (value, count) in row[tokens.clone()].iter_mut().zip(&pass.counts[tokens]) {
                    *value = POOLED * slope * count;
                }
            }
        }
        for (layer, at) in self.layers.iter().zip(&pass.layers).rev() {
            layer.second.backward(parameters, &at.second, slopes, length, gradient);
            layer.narrow.backward(&at.hidden, slopes, length, gradient);
            wide.clear();
            wide.resize(self.shape.feed_forward * length, 0.0);
            layer.narrow.pull(parameters, slopes, length, wide);
            for (slope, hidden) in wide.iter_mut().zip(&at.hidden) {
                *slope = if *hidden > 0.0 { *slope } else { 0.0 };
            }
            layer.widen.backward(&at.middle, wide, length, gradient);
            layer.widen.pull(parameters, wide, length, slopes);
            layer.first.backward(parameters, &at.first, slopes, length, gradient);
            layer.join.backward(&at.mixed, slopes, length, gradient);
            others.clear();
            others.resize(width * length, 0.0);
            layer.join.pull(parameters, slopes, length, others);
            wide.resize(3 * width * length, 0.0);
            let attention = Attention { width, length };
            attention.backward(&at.projected, &at.weights, &pass.segments, others, wide, &mut pass.scratch);
            layer.project.backward(&at.input, wide, length, gradient);
            layer.project.pull(parameters, wide, length, slopes);
        }
        self.embed.backward(&pass.features, slopes, length, gradient);
        for (token, kind) in pass.kinds.iter().enumerate() {
            for feature in 0..width {
                gradient[self.kinds + kind * width + feature] += slopes[feature * length + token];
            }
        }
    }
}

impl EncoderPass {
    /// Lays the tokens of samples side by side.
    pub(crate) fn load<'a>(&mut self, samples: impl Iterator<Item = &'a [Token]> + Clone) {
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
        self.logarithms.resize(start, NOTHING);
        for (tokens, segment) in samples.zip(&self.segments) {
            for (token, at) in tokens.iter().zip(segment.start..) {
                self.kinds[at] = token.kind;
                self.features[at] = token.features[0];
                self.features[start + at] = token.features[1];
                self.counts[at] = token.count;
                // Most layers stand for themselves only, and a logarithm takes time.
                self.logarithms[at] = if token.count > 1.0 { token.count.ln() } else { 0.0 };
            }
        }
    }
}

fn add(sums: &mut [f32], values: &[f32]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}
