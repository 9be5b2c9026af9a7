//! Rounding of numbers to few digits.

/// Rounds to five significant digits: predictions are as good, and weights files are half as long.
pub(crate) fn short(number: f32) -> f32 {
    format!("{number:.4e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn five_digits_stay() {
        let numbers = [0.123_456_79, -98_765.43, 0.0, 1e-30].map(|number| short(number).to_string());
        assert_eq!(numbers, ["0.12346", "-98765", "0", "0.000000000000000000000000000001"]);
    }
}
