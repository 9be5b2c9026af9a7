//! Normalisation over the features of a token, and over the samples of a batch.

use super::lanes::{LANES, dot, sum};

const EPSILON: f32 = 1e-5;

/// Layer normalisation: over the features of each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LayerNorm {
    width: usize,
    at: usize,
}

/// What the backward pass needs of a normalisation.
#[derive(Debug, Clone, Default)]
pub(super) struct Normalised {
    /// Zero mean, unit variance.
    values: Vec<f32>,
    /// One over the standard deviation.
    scale: Vec<f32>,
}

impl LayerNorm {
    pub(super) fn new(width: usize, next: &mut usize) -> Self {
        let at = *next;
        *next += 2 * width;
        Self { width, at }
    }

    /// Slopes of one, offsets of zero.
    pub(super) fn begin(&self, parameters: &mut [f32]) {
        parameters[self.at..self.at + self.width].fill(1.0);
    }

    /// Normalises `values` in place.
    pub(super) fn forward(&self, parameters: &[f32], values: &mut [f32], length: usize, kept: &mut Normalised) {
        let (slopes, offsets) = parameters[self.at..self.at + 2 * self.width].split_at(self.width);
        kept.values.resize(self.width * length, 0.0);
        kept.scale.resize(length, 0.0);
        let share = 1.0 / self.width as f32;
        for from in (0..length).step_by(LANES) {
            let (mut means, mut squares) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            for row in values.chunks_exact(length) {
                let row = &row[from..][..LANES];
                for lane in 0..LANES {
                    means[lane] += row[lane];
                }
            }
            for mean in &mut means {
                *mean *= share;
            }
            for row in values.chunks_exact(length) {
                let row = &row[from..][..LANES];
                for lane in 0..LANES {
                    squares[lane] += (row[lane] - means[lane]) * (row[lane] - means[lane]);
                }
            }
            let mut scales = [0.0; LANES];
            for lane in 0..LANES {
                scales[lane] = 1.0 / (squares[lane] * share + EPSILON).sqrt();
            }
            kept.scale[from..][..LANES].copy_from_slice(&scales);
            let rows = values.chunks_exact_mut(length).zip(kept.values.chunks_exact_mut(length)).zip(slopes.iter().zip(offsets));
            for ((row, normal), (&slope, &offset)) in rows {
                let (row, normal) = (&mut row[from..][..LANES], &mut normal[from..][..LANES]);
                for lane in 0..LANES {
                    normal[lane] = (row[lane] - means[lane]) * scales[lane];
                    row[lane] = slope * normal[lane] + offset;
                }
            }
        }
    }

    /// Turns gradients of what came out into gradients of what went in.
    pub(super) fn backward(&self, parameters: &[f32], kept: &Normalised, slopes: &mut [f32], length: usize, gradient: &mut [f32]) {
        let factors = &parameters[self.at..self.at + self.width];
        let share = 1.0 / self.width as f32;
        for (place, (row, normal)) in slopes.chunks_exact(length).zip(kept.values.chunks_exact(length)).enumerate() {
            gradient[self.at + place] += dot(row, normal);
            gradient[self.at + self.width + place] += sum(row);
        }
        for from in (0..length).step_by(LANES) {
            let (mut means, mut along) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            for ((row, normal), &factor) in slopes.chunks_exact(length).zip(kept.values.chunks_exact(length)).zip(factors) {
                let (row, normal) = (&row[from..][..LANES], &normal[from..][..LANES]);
                for lane in 0..LANES {
                    means[lane] += factor * row[lane] * share;
                    along[lane] += factor * row[lane] * normal[lane] * share;
                }
            }
            let scales = &kept.scale[from..][..LANES];
            for ((row, normal), &factor) in slopes.chunks_exact_mut(length).zip(kept.values.chunks_exact(length)).zip(factors) {
                let (row, normal) = (&mut row[from..][..LANES], &normal[from..][..LANES]);
                for lane in 0..LANES {
                    row[lane] = scales[lane] * (factor * row[lane] - means[lane] - normal[lane] * along[lane]);
                }
            }
        }
    }
}

/// Batch normalisation: over the samples, for each feature; running means and variances stand in a network's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchNorm {
    pub(super) width: usize,
    at: usize,
    state: usize,
}

impl BatchNorm {
    pub(super) fn new(width: usize, next: &mut usize, state: &mut usize) -> Self {
        let (at, of_state) = (*next, *state);
        *next += 2 * width;
        *state += 2 * width;
        Self { width, at, state: of_state }
    }

    /// Slopes and variances of one, offsets and means of zero.
    pub(super) fn begin(&self, parameters: &mut [f32], state: &mut [f32]) {
        parameters[self.at..self.at + self.width].fill(1.0);
        state[self.state + self.width..self.state + 2 * self.width].fill(1.0);
    }

    /// Normalises the first `real` of `length` samples in place and moves the running statistics; the padding becomes zero.
    pub(super) fn forward(
        &self,
        (parameters, state): (&[f32], &mut [f32]),
        values: &mut [f32],
        (real, length): (usize, usize),
        kept: &mut Normalised,
    ) {
        const MOMENTUM: f32 = 0.1;
        kept.values.resize(self.width * length, 0.0);
        kept.scale.resize(self.width, 0.0);
        let count = real as f32;
        for (place, (row, normal)) in values.chunks_exact_mut(length).zip(kept.values.chunks_exact_mut(length)).enumerate() {
            let mean = row[..real].iter().sum::<f32>() / count;
            let variance = row[..real].iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
            let scale = 1.0 / (variance + EPSILON).sqrt();
            let (slope, offset) = (parameters[self.at + place], parameters[self.at + self.width + place]);
            kept.scale[place] = scale;
            for (value, normal) in row[..real].iter_mut().zip(normal.iter_mut()) {
                *normal = (*value - mean) * scale;
                *value = slope * *normal + offset;
            }
            row[real..].fill(0.0);
            normal[real..].fill(0.0);
            let running = &mut state[self.state + place];
            *running += MOMENTUM * (mean - *running);
            let running = &mut state[self.state + self.width + place];
            *running += MOMENTUM * (variance * count / (count - 1.0).max(1.0) - *running);
        }
    }

    /// Turns gradients of what came out into gradients of what went in.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        kept: &Normalised,
        slopes: &mut [f32],
        (real, length): (usize, usize),
        gradient: &mut [f32],
    ) {
        let share = 1.0 / real as f32;
        for (place, (row, normal)) in slopes.chunks_exact_mut(length).zip(kept.values.chunks_exact(length)).enumerate() {
            let (along, all) = (dot(row, normal), sum(row));
            gradient[self.at + place] += along;
            gradient[self.at + self.width + place] += all;
            let factor = parameters[self.at + place] * kept.scale[place];
            for (value, normal) in row[..real].iter_mut().zip(normal) {
                *value = factor * (*value - (all + normal * along) * share);
            }
        }
    }

    /// Slope and offset of each feature once trained.
    pub(super) fn folded(&self, parameters: &[f32], state: &[f32], place: usize) -> (f32, f32) {
        let (mean, variance) = (state[self.state + place], state[self.state + self.width + place]);
        let slope = parameters[self.at + place] / (variance + EPSILON).sqrt();
        (slope, parameters[self.at + self.width + place] - slope * mean)
    }
}
