//! Initial parameters, forward pass while training, and backward passes of normalisations.

use carma_estimate::learned::neural::lanes::{LANES, dot, sum};
use carma_estimate::learned::neural::normalisation::{BatchNorm, EPSILON, LayerNorm, Normalised};

/// Scales of one; offsets stay zero.
pub(super) fn init_layer(norm: &LayerNorm, parameters: &mut [f32]) {
    parameters[norm.at..norm.at + norm.width].fill(1.0);
}

/// Scales and variances of one; offsets and means stay zero.
pub(super) fn init_batch(norm: &BatchNorm, parameters: &mut [f32], state: &mut [f32]) {
    parameters[norm.at..norm.at + norm.width].fill(1.0);
    state[norm.state + norm.width..norm.state + 2 * norm.width].fill(1.0);
}

/// Replaces the gradients of a layer normalisation's outputs by those of its inputs; adds to the parameters' gradients.
pub(super) fn backward_layer(
    norm: &LayerNorm,
    parameters: &[f32],
    kept: &Normalised,
    grad: &mut [f32],
    length: usize,
    gradient: &mut [f32],
) {
    let factors = &parameters[norm.at..norm.at + norm.width];
    let share = 1.0 / norm.width as f32;
    for (place, (row, normal)) in grad.chunks_exact(length).zip(kept.values.chunks_exact(length)).enumerate() {
        gradient[norm.at + place] += dot(row, normal);
        gradient[norm.at + norm.width + place] += sum(row);
    }
    for from in (0..length).step_by(LANES) {
        let (mut means, mut along) = ([0.0_f32; LANES], [0.0_f32; LANES]);
        for ((row, normal), &factor) in grad.chunks_exact(length).zip(kept.values.chunks_exact(length)).zip(factors) {
            let (row, normal) = (&row[from..][..LANES], &normal[from..][..LANES]);
            for lane in 0..LANES {
                means[lane] += factor * row[lane] * share;
                along[lane] += factor * row[lane] * normal[lane] * share;
            }
        }
        let scales = &kept.scale[from..][..LANES];
        for ((row, normal), &factor) in grad.chunks_exact_mut(length).zip(kept.values.chunks_exact(length)).zip(factors) {
            let (row, normal) = (&mut row[from..][..LANES], &normal[from..][..LANES]);
            for lane in 0..LANES {
                row[lane] = scales[lane] * (factor * row[lane] - means[lane] - normal[lane] * along[lane]);
            }
        }
    }
}

/// Normalises the first `real` of `length` samples in place and moves the running statistics; the padding becomes zero.
pub(super) fn forward_batch(
    norm: &BatchNorm,
    (parameters, state): (&[f32], &mut [f32]),
    values: &mut [f32],
    (real, length): (usize, usize),
    kept: &mut Normalised,
) {
    const MOMENTUM: f32 = 0.1;
    kept.values.resize(norm.width * length, 0.0);
    kept.scale.resize(norm.width, 0.0);
    let count = real as f32;
    for (place, (row, normal)) in values.chunks_exact_mut(length).zip(kept.values.chunks_exact_mut(length)).enumerate() {
        let mean = row[..real].iter().sum::<f32>() / count;
        let variance = row[..real].iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        let (factor, offset) = (parameters[norm.at + place], parameters[norm.at + norm.width + place]);
        kept.scale[place] = scale;
        for (value, normal) in row[..real].iter_mut().zip(normal.iter_mut()) {
            *normal = (*value - mean) * scale;
            *value = factor * *normal + offset;
        }
        row[real..].fill(0.0);
        normal[real..].fill(0.0);
        let running = &mut state[norm.state + place];
        *running += MOMENTUM * (mean - *running);
        let running = &mut state[norm.state + norm.width + place];
        *running += MOMENTUM * (variance * count / (count - 1.0).max(1.0) - *running);
    }
}

/// Replaces the gradients of a batch normalisation's outputs by those of its inputs; adds to the parameters' gradients.
pub(super) fn backward_batch(
    norm: &BatchNorm,
    parameters: &[f32],
    kept: &Normalised,
    grad: &mut [f32],
    (real, length): (usize, usize),
    gradient: &mut [f32],
) {
    let share = 1.0 / real as f32;
    for (place, (row, normal)) in grad.chunks_exact_mut(length).zip(kept.values.chunks_exact(length)).enumerate() {
        let (along, all) = (dot(row, normal), sum(row));
        gradient[norm.at + place] += along;
        gradient[norm.at + norm.width + place] += all;
        let factor = parameters[norm.at + place] * kept.scale[place];
        for (value, normal) in row[..real].iter_mut().zip(normal) {
            *value = factor * (*value - (all + normal * along) * share);
        }
    }
}
