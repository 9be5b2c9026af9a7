//! Loops over whole lanes, which the compiler vectorizes.

/// Numbers per vector operation.
pub const LANES: usize = 8;

/// Rounds up to a whole number of lanes.
pub const fn padded(length: usize) -> usize {
    length.div_ceil(LANES) * LANES
}

/// Whole lanes of an array.
#[inline]
pub fn lanes(values: &[f32]) -> &[[f32; LANES]] {
    values.as_chunks().0
}

/// The same, mutable.
#[inline]
pub fn lanes_mut(values: &mut [f32]) -> &mut [[f32; LANES]] {
    values.as_chunks_mut().0
}

/// Sum of products of two arrays of whole lanes.
#[inline]
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (left, right) in lanes(left).iter().zip(lanes(right)) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    total(&sums)
}

/// Sum over whole lanes.
#[inline]
pub fn sum(values: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for values in lanes(values) {
        for lane in 0..LANES {
            sums[lane] += values[lane];
        }
    }
    total(&sums)
}

/// Largest of whole lanes.
#[inline]
pub fn largest(values: &[f32]) -> f32 {
    let mut most = [f32::MIN; LANES];
    for values in lanes(values) {
        for lane in 0..LANES {
            most[lane] = if values[lane] > most[lane] { values[lane] } else { most[lane] };
        }
    }
    most.into_iter().fold(f32::MIN, f32::max)
}

/// Adds `factor` times `values`.
#[inline]
pub fn add_scaled(sums: &mut [f32], factor: f32, values: &[f32]) {
    for (sums, values) in lanes_mut(sums).iter_mut().zip(lanes(values)) {
        for lane in 0..LANES {
            sums[lane] += factor * values[lane];
        }
    }
}

// Not inlined: its order of additions would make the preceding loop shuffle lanes.
#[inline(never)]
fn total(sums: &[f32; LANES]) -> f32 {
    let half: [f32; LANES / 2] = std::array::from_fn(|lane| sums[lane] + sums[lane + LANES / 2]);
    (half[0] + half[2]) + (half[1] + half[3])
}

/// The exponential function, accurate to about 1e-5 up to 87, without branches, and the same on every machine. Below
/// -60 it is zero: denormal numbers would slow down all arithmetic.
#[allow(clippy::inline_always, reason = "a call would keep the loop around it from becoming vector instructions")]
#[inline(always)]
pub fn exp(value: f32) -> f32 {
    // Adding this leaves the nearest whole number in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let nothing = value < -60.0;
    let value = if nothing { -60.0 } else { value };
    let value = if value > 87.0 { 87.0 } else { value };
    let power = value * std::f32::consts::LOG2_E;
    let shifted = power + ROUND;
    let rest = power - (shifted - ROUND);
    // Taylor series of 2^rest, with rest at most a half.
    let series = 1.0
        + rest
            * (std::f32::consts::LN_2
                + rest
                    * (0.240_226_5 + rest * (0.055_504_11 + rest * (0.009_618_129 + rest * (0.001_333_355_8 + rest * 0.000_154_035_3)))));
    let whole = shifted.to_bits().wrapping_sub(ROUND.to_bits());
    let result = series * f32::from_bits(whole.wrapping_add(127) << 23);
    if nothing { 0.0 } else { result }
}

/// The exponential function of a number that is not positive, accurate to 1e-6; below -69 it is practically zero. Half as long as
/// [`exp`].
#[allow(clippy::inline_always, reason = "a call would keep the loop around it from becoming vector instructions")]
#[inline(always)]
pub fn exp_of_negative(value: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let power = value * std::f32::consts::LOG2_E;
    let power = if power > -100.0 { power } else { -100.0 };
    let shifted = power + ROUND;
    let rest = power - (shifted - ROUND);
    let series = 1.0
        + rest
            * (std::f32::consts::LN_2
                + rest
                    * (0.240_226_5 + rest * (0.055_504_11 + rest * (0.009_618_129 + rest * (0.001_333_355_8 + rest * 0.000_154_035_3)))));
    // The whole part is added to the exponent.
    f32::from_bits(series.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_of_negative_numbers_is_close() {
        for step in -2000..=0_i16 {
            let value = f32::from(step) / 100.0;
            assert!((exp_of_negative(value) / value.exp() - 1.0).abs() < 2e-6, "{value}: {} {}", exp_of_negative(value), value.exp());
        }
        assert!([-70.0, -1e30].into_iter().all(|value| exp_of_negative(value) < 1e-29));
    }

    #[test]
    fn the_exponential_is_close() {
        for step in -600..870_i16 {
            let value = f32::from(step) / 10.0;
            assert!((exp(value) / value.exp() - 1.0).abs() < 1e-5, "{value}: {} {}", exp(value), value.exp());
        }
        assert!(exp(-1e30).abs() < f32::MIN_POSITIVE);
    }

    #[test]
    fn sums_are_over_all_lanes() {
        let values: Vec<f32> = (0..16_u8).map(f32::from).collect();
        assert_eq!((sum(&values), dot(&values, &values), largest(&values)), (120.0, 1240.0, 15.0));
        assert_eq!((padded(0), padded(1), padded(8), padded(9)), (0, 8, 8, 16));
    }
}
