//! Keys that are numbers.

use std::marker::PhantomData;

use super::{Checker, KeyInfo, Kind, Setting};
use crate::units::{Fraction, MiB, Seconds, Watts};

/// A type that is written as a number.
pub trait Number: Copy + std::fmt::Debug + PartialEq {
    /// What may be written.
    const KIND: Kind;
    /// The range of a key that declares none.
    const RANGE: Option<(f64, f64)> = None;

    /// From a number that was checked.
    fn from_number(number: f64) -> Self;

    /// As a plain number.
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($type:ident $([$range:expr])?: $kind:expr, $from:expr, $to:expr;)+) => {$(
        impl Number for $type {
            const KIND: Kind = $kind;
            $(const RANGE: Option<(f64, f64)> = Some($range);)?

            fn from_number(number: f64) -> Self {
                $from(number)
            }

            fn number(self) -> f64 {
                $to(self)
            }
        }

        impl Setting for $type {
            type Written = f64;
            type Value = Self;
            const KIND: Kind = <Self as Number>::KIND;
            const RANGE: Option<(f64, f64)> = <Self as Number>::RANGE;

            fn read(written: &f64, _: Option<&Self>, key: &KeyInfo, check: &mut Checker) -> Option<Self> {
                checked(*written, key, check).map(Number::from_number)
            }

            fn write(value: &Self) -> Option<f64> {
                Some(value.number())
            }
        }
    )+};
}

numbers! {
    f64: Kind::Number(""), |number| number, |value| value;
    Fraction [(0.0, 1.0)]: Kind::Number(""), Self::clamped, Self::get;
    Seconds: Kind::Number("s"), |number| Self::new(number).unwrap_or_default(), Self::get;
    Watts: Kind::Number("W"), Self, |value: Self| value.0;
    MiB [(0.0, MOST_WHOLE)]: Kind::Whole("MiB"), |number| Self(number as u64), |value: Self| value.0 as f64;
    u32 [(0.0, u32::MAX as f64)]: Kind::Whole(""), |number| number as Self, f64::from;
    u64 [(0.0, MOST_WHOLE)]: Kind::Whole(""), |number| number as Self, |value| value as f64;
}

/// The largest number up to which a float holds every whole number.
const MOST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Reports a number out of the key's range, or one that should be whole.
fn checked(number: f64, key: &KeyInfo, check: &mut Checker) -> Option<f64> {
    let (least, most) = key.range.unwrap_or((f64::MIN, f64::MAX));
    let fits = (least..=most).contains(&number) && (number.fract() == 0.0 || !matches!(key.kind, Kind::Whole(_)));
    if !fits {
        check.refuse(number, key.allowed());
    }
    fits.then_some(number)
}

/// A number whose zero means "none".
#[derive(Debug)]
pub struct ZeroIsNone<N>(PhantomData<N>);

impl<N: Number> Setting for ZeroIsNone<N> {
    type Written = f64;
    type Value = Option<N>;
    const KIND: Kind = N::KIND;
    const RANGE: Option<(f64, f64)> = N::RANGE;

    fn read(written: &f64, _: Option<&Option<N>>, key: &KeyInfo, check: &mut Checker) -> Option<Option<N>> {
        checked(*written, key, check).map(|number| (number > 0.0).then(|| N::from_number(number)))
    }

    fn write(value: &Option<N>) -> Option<f64> {
        Some(value.map_or(0.0, N::number))
    }
}
