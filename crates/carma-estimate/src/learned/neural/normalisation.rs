//! Normalisation over the features of a token, and over the samples of a batch.

use super::lanes::LANES;

/// Added to variances.
pub const EPSILON: f32 = 1e-5;

/// Layer normalisation: over the features of each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerNorm {
    /// Features of a token.
    pub width: usize,
    /// Index of its first parameter: scales, then offsets.
    pub at: usize,
}

/// Values that the backward pass of a normalisation needs.
#[derive(Debug, Clone, Default)]
pub struct Normalised {
    /// Zero mean, unit variance.
    pub values: Vec<f32>,
    /// One over the standard deviation.
    pub scale: Vec<f32>,
}

impl LayerNorm {
    /// Takes the next parameters, from `next` on.
    pub fn new(width: usize, next: &mut usize) -> Self {
        let at = *next;
        *next += 2 * width;
        Self { width, at }
    }

    /// Normalises `values` in place.
    pub fn forward(&self, parameters: &[f32], values: &mut [f32], length: usize, kept: &mut Normalised) {
        let (scale_of, offsets) = parameters[self.at..self.at + 2 * self.width].split_at(self.width);
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
            let rows = values.chunks_exact_mut(length).zip(kept.values.chunks_exact_mut(length)).zip(scale_of.iter().zip(offsets));
            for ((row, normal), (&scale, &offset)) in rows {
                let (row, normal) = (&mut row[from..][..LANES], &mut normal[from..][..LANES]);
                for lane in 0..LANES {
                    normal[lane] = (row[lane] - means[lane]) * scales[lane];
                    row[lane] = scale * normal[lane] + offset;
                }
            }
        }
    }
}

/// Batch normalisation: over the samples, for each feature. Running means and variances are part of the network's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNorm {
    /// Features.
    pub width: usize,
    /// Index of its first parameter: scales, then offsets.
    pub at: usize,
    /// Index of its first running statistic: means, then variances.
    pub state: usize,
}

impl BatchNorm {
    /// Takes the next parameters and the next running statistics.
    pub fn new(width: usize, next: &mut usize, state: &mut usize) -> Self {
        let (at, of_state) = (*next, *state);
        *next += 2 * width;
        *state += 2 * width;
        Self { width, at, state: of_state }
    }

    /// Scale and offset of a feature in a trained network.
    pub fn folded(&self, parameters: &[f32], state: &[f32], place: usize) -> (f32, f32) {
        let (mean, variance) = (state[self.state + place], state[self.state + self.width + place]);
        let scale = parameters[self.at + place] / (variance + EPSILON).sqrt();
        (scale, parameters[self.at + self.width + place] - scale * mean)
    }
}
