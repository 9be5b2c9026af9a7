//! The size of the model's input, which the table lacks: inferred from the first layer and the megabytes below the table.

use super::super::convolution;
use super::{Row, Totals};
use crate::model::LayerKind;

/// Bytes of an element in these tables.
const ELEMENT: f64 = 4.0;
pub(super) const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Half of the last printed digit of the megabytes.
const ROUNDING: f64 = 0.005;

/// Common image sizes.
const USUAL_SIDES: [u64; 10] = [28, 32, 64, 96, 128, 224, 256, 299, 384, 512];

/// Shape of a sample, as given or inferred.
pub(super) fn infer(rows: &[Row<'_>], totals: &Totals, batch: u64, given: Option<&[u64]>) -> Option<Vec<u64>> {
    if let Some(given) = given {
        return Some(given.to_vec());
    }
    let first = rows.first()?;
    let elements = |megabytes: f64| megabytes.max(0.0) * MEBIBYTE / ELEMENT / batch as f64;
    match (&first.kind, first.output.as_slice()) {
        (LayerKind::Convolution { .. }, &[_, outputs, height, width]) => {
            let allowed = totals.input_megabytes.map(|size| (elements(size - ROUNDING), elements(size + ROUNDING)));
            image(first.parameters, outputs, [height, width], allowed)
        }
        (LayerKind::Linear, [_, before @ .., features]) if *features > 0 => {
            let inputs = first.parameters / features;
            let stated = totals.input_megabytes.map(elements);
            // With a bias there is one more parameter per output.
            let with_bias = inputs.checked_sub(1).filter(|&inputs| inputs > 0);
            let near = |inputs: u64| stated.is_none_or(|stated| (inputs as f64 - stated).abs() < elements(2.0 * ROUNDING));
            let inputs = with_bias.filter(|&inputs| near(inputs)).unwrap_or(inputs);
            Some(before.iter().copied().chain([inputs]).collect())
        }
        (LayerKind::Embedding, _) | (_, []) => None,
        (_, [_, rest @ ..]) => Some(rest.to_vec()),
    }
}

/// The input image of a first convolution: the most common one that gives its output.
fn image(parameters: u64, outputs: u64, [height, width]: [u64; 2], allowed: Option<(f64, f64)>) -> Option<Vec<u64>> {
    let mut best: Option<(i64, Vec<u64>)> = None;
    // Images have three channels, or one.
    for (channels, likely) in [(3, 5), (1, 4), (4, 0), (2, 0)] {
        let Some(filter) = convolution::filter(parameters, channels, outputs, None, Some(1)) else { continue };
        let kernel = filter.kernel[0];
        for stride in [1, 2, 4, kernel] {
            for (padding, left_over) in (0..=kernel / 2).flat_map(|padding| (0..stride).map(move |left_over| (padding, left_over))) {
                let side = |output: u64| {
                    let reach = output.saturating_sub(1).saturating_mul(stride).saturating_add(kernel + left_over);
                    reach.checked_sub(2 * padding).filter(|&side| side > 0)
                };
                let (Some(high), Some(wide)) = (side(height), side(width)) else { continue };
                let elements = channels as f64 * high as f64 * wide as f64;
                if allowed.is_some_and(|(least, most)| elements < least || elements > most) {
                    continue;
                }
                let usual = if high == wide && USUAL_SIDES.contains(&high) { 100 } else { i64::from((high | wide).trailing_zeros()) };
                let rank = usual + likely - i64::from(filter.oddity);
                if best.as_ref().is_none_or(|(most, _)| rank > *most) {
                    best = Some((rank, vec![channels, high, wide]));
                }
            }
        }
    }
    best.map(|(_, shape)| shape)
}
