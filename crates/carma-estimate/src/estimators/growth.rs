//! TensorFlow with memory growth: its allocator reserves regions that double in size, so memory grows in steps. The constants are
//! fitted to one published set of fully connected networks trained with Keras on A100-40GB.

use crate::model::{LayerKind, Model};
use crate::stack::MIB;

use super::{Answer, Question};

/// Weights and Adam's two moments, with some fragmentation.
const COPIES: f64 = 3.03;
/// MiB of the data set that Keras puts on the GPU, with its batches.
const DATA: f64 = 250.0;
/// Region for the data set while the weights are small.
const DATA_REGION: f64 = 256.0;
/// Up to this many MiB, weights have their own regions before the data.
const SMALL_WEIGHTS: f64 = 122.0;
/// MiB that cuBLAS loads with its first kernel.
const MATRIX_CONTEXT: f64 = 256.0;
/// MiB of kernels and descriptors per layer.
const PER_LAYER: f64 = 0.01;
/// Maximum share of the GPU that can be allocated.
const SHARE: f64 = 0.968;

pub(super) fn estimate(model: &Model, question: &Question<'_>) -> Answer {
    let weights = model.parameters() as f64 * 4.0 / MIB;
    let regions =
        if weights < SMALL_WEIGHTS { DATA_REGION + doubling(weights * 1.03) } else { doubling(COPIES * weights + DATA) - DATA_REGION };
    // A product with a single row or column does not use the library.
    let wide = model.layers.iter().filter(|layer| layer.kind == LayerKind::Linear && layer.output.features() > 1).count() > 1;
    let libraries = if wide { MATRIX_CONTEXT } else { 0.0 };
    let layers = model.layers.iter().filter(|layer| layer.kind == LayerKind::Linear).count() as f64;
    let wanted = question.stack.context + libraries + regions + layers * PER_LAYER;
    let most = question.gpu.map_or(f64::INFINITY, |gpu| gpu as f64 / MIB * SHARE);
    Answer { out_of_memory: weights * COPIES > most, ..Answer::plain((wanted.min(most) * MIB) as u64) }
}

/// The sum of regions of 2, 4, 8 ... MiB that reaches `need`.
fn doubling(need: f64) -> f64 {
    let mut region = 2.0;
    let mut sum = region;
    while sum < need {
        region *= 2.0;
        sum += region;
    }
    sum
}
