//! Backward pass of attention.

use carma_estimate::learned::neural::attention::{Attention, Segment};
use carma_estimate::learned::neural::lanes::{add_scaled, dot};

/// Sets the gradients of query, key and value, from those of the mixed values.
pub(super) fn backward(
    attention: Attention,
    projected: &[f32],
    weights: &[f32],
    segments: &[Segment],
    mixed: &[f32],
    grad: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    let Attention { width, length } = attention;
    let scale = attention.scale();
    grad.fill(0.0);
    for segment in segments {
        let tokens = segment.start..segment.start + segment.padded;
        scratch.resize(segment.padded, 0.0);
        for query in 0..segment.real {
            let weights = &weights[segment.weights + query * segment.padded..][..segment.padded];
            scratch.fill(0.0);
            for feature in 0..width {
                let mixed = mixed[feature * length + segment.start + query];
                let value = (2 * width + feature) * length;
                add_scaled(scratch, mixed, &projected[value + tokens.start..value + tokens.end]);
                add_scaled(&mut grad[value + tokens.start..value + tokens.end], mixed, weights);
            }
            let along = dot(scratch, weights);
            for (score, weight) in scratch.iter_mut().zip(weights) {
                *score = weight * (*score - along) * scale;
            }
            for feature in 0..width {
                let (at, key) = (feature * length + segment.start + query, (width + feature) * length);
                grad[at] += dot(scratch, &projected[key + tokens.start..key + tokens.end]);
                add_scaled(&mut grad[key + tokens.start..key + tokens.end], projected[at], scratch);
            }
        }
    }
}
