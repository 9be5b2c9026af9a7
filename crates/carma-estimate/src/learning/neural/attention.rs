//! Attention with one head, each sample by itself. A token that stands for several equal ones weighs as much as they would.

use super::lanes::{LANES, add_scaled, dot, exp, exp_of_negative, lanes, lanes_mut, largest, sum};

/// The tokens of one sample among those of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where they begin.
    pub(super) start: usize,
    /// How many there are.
    pub(super) real: usize,
    /// How many with padding.
    pub(super) padded: usize,
    /// Where their weights begin: a row of `padded` for each real one.
    pub(super) weights: usize,
}

/// Query, key and value stand below each other in `projected`: `3 * width` rows of `length`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub(super) width: usize,
    pub(super) length: usize,
}

impl Attention {
    fn scale(self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    /// Weights of all pairs, and the values mixed by them. `counts` holds logarithms of how many tokens each stands for.
    pub(super) fn forward(self, projected: &[f32], counts: &[f32], segments: &[Segment], weights: &mut [f32], mixed: &mut [f32]) {
        let Self { width, length } = self;
        let row = |part: usize, feature: usize| &projected[(part * width + feature) * length..][..length];
        let scale = self.scale();
        for segment in segments {
            let tokens = segment.start..segment.start + segment.padded;
            for query in 0..segment.real {
                let scores = &mut weights[segment.weights + query * segment.padded..][..segment.padded];
                let wanted = |feature: usize| scale * row(0, feature)[segment.start + query];
                for (place, (score, count)) in lanes_mut(scores).iter_mut().zip(lanes(&counts[tokens.clone()])).enumerate() {
                    let mut sums = *count;
                    for feature in 0..width {
                        let (factor, keys) = (wanted(feature), &lanes(&row(1, feature)[tokens.clone()])[place]);
                        for lane in 0..LANES {
                            sums[lane] += factor * keys[lane];
                        }
                    }
                    *score = sums;
                }
                let most = largest(scores);
                for score in scores.iter_mut() {
                    *score = exp(*score - most);
                }
                let share = 1.0 / sum(scores);
                for score in scores.iter_mut() {
                    *score *= share;
                }
                for feature in 0..width {
                    mixed[feature * length + segment.start + query] = dot(scores, &row(2, feature)[tokens.clone()]);
                }
            }
        }
    }

    /// The values of one sample mixed as [`forward`](Self::forward) does, where no backward pass follows: weights are not kept.
    /// `WIDTH` is the width, known to the compiler.
    pub(super) fn mix<const WIDTH: usize>(self, projected: &[f32], counts: &[f32], real: usize, scores: &mut Vec<f32>, mixed: &mut [f32]) {
        let length = self.length;
        let row = |part: usize, feature: usize| &projected[(part * WIDTH + feature) * length..][..length];
        let keys: [&[[f32; LANES]]; WIDTH] = std::array::from_fn(|feature| lanes(row(1, feature)));
        let scale = self.scale();
        scores.clear();
        scores.resize(length, 0.0);
        for query in 0..real {
            let wanted: [f32; WIDTH] = std::array::from_fn(|feature| scale * row(0, feature)[query]);
            let mut most = [f32::MIN; LANES];
            for (place, (scores, count)) in lanes_mut(scores).iter_mut().zip(lanes(counts)).enumerate() {
                let mut sums = *count;
                for (factor, keys) in wanted.iter().zip(&keys) {
                    let keys = &keys[place];
                    for lane in 0..LANES {
                        sums[lane] += factor * keys[lane];
                    }
                }
                for lane in 0..LANES {
                    most[lane] = if sums[lane] > most[lane] { sums[lane] } else { most[lane] };
                }
                *scores = sums;
            }
            let most = most.into_iter().fold(f32::MIN, f32::max);
            for score in scores.iter_mut() {
                *score = exp_of_negative(*score - most);
            }
            let share = 1.0 / sum(scores);
            for feature in 0..WIDTH {
                mixed[feature * length + query] = share * dot(scores, row(2, feature));
            }
        }
    }

    /// Gradients of query, key and value (set, not added to) from those of the mixed values. `scratch` is as long as the longest segment.
    pub(super) fn backward(
        self,
        projected: &[f32],
        weights: &[f32],
        segments: &[Segment],
        mixed: &[f32],
        slopes: &mut [f32],
        scratch: &mut Vec<f32>,
    ) {
        let Self { width, length } = self;
        let scale = self.scale();
        slopes.fill(0.0);
        for segment in segments {
            let tokens = segment.start..segment.start + segment.padded;
            scratch.resize(segment.padded, 0.0);
            for query in 0..segment.real {
                let weights = &weights[segment.weights + query * segment.padded..][..segment.padded];
                scratch.fill(0.0);
                for feature in 0..width {
                    let slope = mixed[feature * length + segment.start + query];
                    let value = (2 * width + feature) * length;
                    add_scaled(scratch, slope, &projected[value + tokens.start..value + tokens.end]);
                    add_scaled(&mut slopes[value + tokens.start..value + tokens.end], slope, weights);
                }
                let along = dot(scratch, weights);
                for (slope, weight) in scratch.iter_mut().zip(weights) {
                    *slope = weight * (*slope - along) * scale;
                }
                for feature in 0..width {
                    let (at, key) = (feature * length + segment.start + query, (width + feature) * length);
                    slopes[at] += dot(scratch, &projected[key + tokens.start..key + tokens.end]);
                    add_scaled(&mut slopes[key + tokens.start..key + tokens.end], projected[at], scratch);
                }
            }
        }
    }
}
