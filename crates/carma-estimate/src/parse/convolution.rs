//! Arithmetic of convolutions and pools: sizes from arguments, and filters from parameter counts.

/// A convolution's filter, inferred from its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filter {
    pub kernel: [u64; 2],
    pub groups: u64,
    pub bias: bool,
    /// Penalty for unusual filters: 0 for a square odd filter over all channels.
    pub oddity: u32,
}

/// The most plausible filter from `inputs` to `outputs` channels with this many parameters, if any.
///
/// A weight has outputs x inputs / groups x height x width elements; a bias has one per output.
pub(super) fn filter(parameters: u64, inputs: u64, outputs: u64, kernel: Option<[u64; 2]>, groups: Option<u64>) -> Option<Filter> {
    if inputs == 0 || outputs == 0 {
        return None;
    }
    let mut best: Option<Filter> = None;
    for bias in [false, true] {
        let Some(weights) = parameters.checked_sub(if bias { outputs } else { 0 }) else { continue };
        if weights == 0 || weights % outputs != 0 {
            continue;
        }
        for candidate in filters_of(weights / outputs, inputs, outputs) {
            let fits = kernel.is_none_or(|kernel| kernel[0].saturating_mul(kernel[1]) == candidate.kernel[0] * candidate.kernel[1])
                && groups.is_none_or(|groups| groups == candidate.groups);
            if fits && best.is_none_or(|best| candidate.oddity < best.oddity) {
                best = Some(Filter { kernel: kernel.unwrap_or(candidate.kernel), bias, ..candidate });
            }
        }
    }
    best
}

/// Filters for a number of elements per output channel.
fn filters_of(per_output: u64, inputs: u64, outputs: u64) -> impl Iterator<Item = Filter> {
    let dense = per_output.is_multiple_of(inputs).then(|| per_output / inputs).and_then(|area| {
        let (kernel, oddity) = sides(area)?;
        Some(Filter { kernel, groups: 1, bias: false, oddity })
    });
    let depthwise = (outputs.is_multiple_of(inputs) && inputs > 1).then_some(per_output).and_then(|area| {
        let (kernel, oddity) = sides(area)?;
        // Depthwise filters are odd, and rarely over the few channels of an image; grouped ones (below) are more likely than others.
        let rare = if inputs < 8 || oddity > 20 { 46 } else { 1 };
        Some(Filter { kernel, groups: inputs, bias: false, oddity: rare + oddity })
    });
    let grouped = [(3, 40), (5, 41), (7, 42), (1, 43)].into_iter().filter_map(move |(side, oddity)| {
        let area = side * side;
        let width = per_output.is_multiple_of(area).then_some(per_output / area)?;
        let groups = (width > 0 && inputs.is_multiple_of(width)).then_some(inputs / width)?;
        (groups > 1 && outputs.is_multiple_of(groups)).then_some(Filter { kernel: [side, side], groups, bias: false, oddity })
    });
    dense.into_iter().chain(depthwise).chain(grouped)
}

/// Sides of a filter of this area, and their penalty.
fn sides(area: u64) -> Option<([u64; 2], u32)> {
    const LARGEST: u64 = 64;
    let root = area.isqrt();
    if root * root == area && (1..=LARGEST).contains(&root) {
        // Even filters cut an image into patches; large odd ones are mostly coincidence.
        return Some(([root, root], if root % 2 == 1 && root <= 11 { 0 } else { 30 }));
    }
    matches!(area, 3 | 5 | 7 | 11 | 13 | 15 | 21 | 31).then_some(([1, area], 20))
}

/// Output size of a sliding window over `size`.
pub(super) fn slide(size: u64, kernel: u64, stride: u64, padding: u64, dilation: u64, round_up: bool) -> u64 {
    let reach = dilation.saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
    let room = size.saturating_add(padding.saturating_mul(2)).saturating_sub(reach);
    let stride = stride.max(1);
    let steps = if round_up { room.div_ceil(stride) } else { room / stride };
    let out = steps.saturating_add(1);
    // A window that starts beyond the input and its left padding is dropped.
    if round_up && steps.saturating_mul(stride) >= size.saturating_add(padding) { out - 1 } else { out }.max(1)
}

/// The stride between an input and an output size.
pub(super) fn stride(input: u64, output: u64) -> u64 {
    // Without padding the output is slightly smaller than input / stride, with padding at most one larger.
    if output == 0 { 1 } else { ((input as f64 / output as f64) + 0.25).floor().max(1.0) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(parameters: u64, inputs: u64, outputs: u64) -> Option<([u64; 2], u64, bool)> {
        filter(parameters, inputs, outputs, None, None).map(|filter| (filter.kernel, filter.groups, filter.bias))
    }

    #[test]
    fn filters_follow_from_parameter_counts() {
        assert_eq!(found(9_408, 3, 64), Some(([7, 7], 1, false)));
        assert_eq!(found(1_792, 3, 64), Some(([3, 3], 1, true)));
        assert_eq!(found(288, 32, 32), Some(([3, 3], 32, false)));
        assert_eq!(found(4_704, 3, 96), Some(([4, 4], 1, true)));
        assert_eq!(found(36_992, 128, 128), Some(([3, 3], 4, true)));
        assert_eq!(found(264, 32, 8), Some(([1, 1], 1, true)));
        assert_eq!(found(114_688, 128, 128), Some(([1, 7], 1, false)));
        assert_eq!(found(4_608, 128, 128), Some(([3, 3], 32, false)));
        assert_eq!(found(5, 3, 64), None);
        assert_eq!(found(u64::MAX, u64::MAX, 1), Some(([1, 1], 1, false)));
    }

    #[test]
    fn sizes_and_strides() {
        assert_eq!(slide(224, 7, 2, 3, 1, false), 112);
        assert_eq!(slide(109, 3, 2, 0, 1, true), 54);
        assert_eq!(slide(0, 7, 0, 0, u64::MAX, true), 1);
        assert_eq!(
            (stride(224, 112), stride(299, 149), stride(35, 17), stride(71, 35), stride(17, 8), stride(147, 145)),
            (2, 2, 2, 2, 2, 1)
        );
    }
}
