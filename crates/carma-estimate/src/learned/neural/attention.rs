//! Single-head attention within each sample. A token with a count weighs as much as that many equal tokens.

use super::lanes::{LANES, dot, exp, exp_of_negative, lanes, lanes_mut, largest, sum};

/// The tokens of one sample among those of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Index of the first.
    pub start: usize,
    /// Number of tokens.
    pub real: usize,
    /// Number with padding.
    pub padded: usize,
    /// Index of their first attention weight: a row of `padded` per token.
    pub weights: usize,
}

/// Sizes of an attention. Query, key and value follow each other in `projected`: `3 * width` rows of `length`.
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    /// Width of a token.
    pub width: usize,
    /// Tokens of the batch, with padding.
    pub length: usize,
}

impl Attention {
    /// Factor of all scores.
    pub fn scale(self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    /// Attention weights of all pairs, and the values mixed by them. `counts` holds the logarithm of each token's count.
    pub fn forward(self, projected: &[f32], counts: &[f32], segments: &[Segment], weights: &mut [f32], mixed: &mut [f32]) {
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

    /// The mixed values of one sample as in [`forward`](Self::forward), without saving weights for a backward pass. `WIDTH` is the width,
    /// as a compile-time constant.
    pub fn mix<const WIDTH: usize>(self, projected: &[f32], counts: &[f32], real: usize, scores: &mut Vec<f32>, mixed: &mut [f32]) {
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
}
