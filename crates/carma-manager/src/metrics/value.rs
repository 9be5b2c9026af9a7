//! Conversion to metric values: bytes, shares from 0 to 1, and 1 for true.

use carma_core::{Fraction, MiB};

/// The value of a metric, if known.
pub(super) type Value<T> = fn(&T) -> Option<f64>;

pub(super) fn bytes(memory: MiB) -> f64 {
    memory.0 as f64 * 1_048_576.0
}

pub(super) fn share(value: Option<Fraction>) -> Option<f64> {
    value.map(Fraction::get)
}

pub(super) fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
