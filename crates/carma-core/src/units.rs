//! Units as types: memory, fractions, power, energy, time.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number that is outside what its unit allows.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{value} is not {allowed}")]
pub struct OutOfRange {
    value: f64,
    allowed: &'static str,
}

/// GPU memory in mebibytes. Differences stop at zero: free memory is never negative.
///
/// ```
/// use carma_core::MiB;
/// assert_eq!(MiB(40_960) - MiB(512), MiB(40_448));
/// assert_eq!(MiB(1) - MiB(2), MiB(0));
/// assert_eq!([MiB(800), MiB(40_960)].map(|memory| memory.to_string()), ["800 MiB", "40.0 GiB"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MiB(pub u64);

impl MiB {
    /// No memory.
    pub const ZERO: Self = Self(0);

    /// This share of the memory, rounded down.
    #[must_use]
    pub fn share(self, share: Fraction) -> Self {
        Self((self.0 as f64 * share.get()) as u64)
    }
}

impl Add for MiB {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for MiB {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for MiB {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for MiB {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl From<MiB> for u64 {
    fn from(size: MiB) -> Self {
        size.0
    }
}

impl fmt::Display for MiB {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What fits on a GPU is compared in GiB; MiB are for what is less than one.
        if self.0 < 1024 { write!(f, "{} MiB", self.0) } else { write!(f, "{:.1} GiB", self.0 as f64 / 1024.0) }
    }
}

/// A share between 0 and 1: utilisation, a threshold, progress.
///
/// ```
/// use carma_core::Fraction;
/// assert!(Fraction::new(0.8).is_ok());
/// assert_eq!(Fraction::new(1.2).unwrap_err().to_string(), "1.2 is not a fraction from 0 to 1");
/// ```
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Fraction(f64);

impl Fraction {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);
    /// All of it.
    pub const ONE: Self = Self(1.0);

    /// A checked fraction.
    pub fn new(value: f64) -> Result<Self, OutOfRange> {
        // Adding zero turns -0.0 into 0.0, so that equal fractions have equal bits.
        if (0.0..=1.0).contains(&value) { Ok(Self(value + 0.0)) } else { Err(OutOfRange { value, allowed: "a fraction from 0 to 1" }) }
    }

    /// The nearest fraction; not-a-number becomes zero.
    pub const fn clamped(value: f64) -> Self {
        if value.is_nan() { Self::ZERO } else { Self(value.clamp(0.0, 1.0) + 0.0) }
    }

    /// The plain number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl TryFrom<f64> for Fraction {
    type Error = OutOfRange;
    fn try_from(value: f64) -> Result<Self, OutOfRange> {
        Self::new(value)
    }
}

impl From<Fraction> for f64 {
    fn from(fraction: Fraction) -> Self {
        fraction.0
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.0)
    }
}

/// Electrical power.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watts(pub f64);

impl PartialEq for Watts {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Watts {}

impl PartialOrd for Watts {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Watts {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} W", self.0)
    }
}

/// A span of time. Kept in whole milliseconds, so that sums are exact and order is total; written as seconds.
///
/// ```
/// use carma_core::Seconds;
/// assert_eq!(Seconds::new(1.5).unwrap() + Seconds::from_secs(2), Seconds::new(3.5).unwrap());
/// assert!(Seconds::new(-1.0).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Seconds {
    milliseconds: u64,
}

impl Seconds {
    /// No time at all.
    pub const ZERO: Self = Self { milliseconds: 0 };
    /// The smallest span that is not zero.
    pub const TICK: Self = Self { milliseconds: 1 };

    /// A checked span, to the millisecond.
    pub fn new(seconds: f64) -> Result<Self, OutOfRange> {
        milliseconds(seconds).map(|milliseconds| Self { milliseconds })
    }

    /// A span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { milliseconds: seconds.saturating_mul(1000) }
    }

    /// The span in milliseconds.
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    /// The span times a factor; an invalid result becomes zero.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        // A cast of a float is the nearest number that there is.
        Self { milliseconds: (self.milliseconds as f64 * factor) as u64 }
    }

    /// The span as a plain number of seconds.
    pub fn get(self) -> f64 {
        self.milliseconds as f64 / 1000.0
    }
}

/// The rest of a span; zero if more is subtracted than there is.
impl Sub for Seconds {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { milliseconds: self.milliseconds.saturating_sub(other.milliseconds) }
    }
}

impl Add for Seconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { milliseconds: self.milliseconds.saturating_add(other.milliseconds) }
    }
}

/// A point in time: seconds since an epoch that the driver of the core chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Time {
    milliseconds: u64,
}

impl Time {
    /// The driver's epoch.
    pub const ZERO: Self = Self { milliseconds: 0 };
    /// Later than anything.
    pub const MAX: Self = Self { milliseconds: u64::MAX };

    /// A checked point in time, to the millisecond.
    pub fn new(seconds: f64) -> Result<Self, OutOfRange> {
        milliseconds(seconds).map(|milliseconds| Self { milliseconds })
    }

    /// Whole seconds after the epoch.
    pub const fn from_secs(seconds: u64) -> Self {
        Self { milliseconds: seconds.saturating_mul(1000) }
    }

    /// Milliseconds since the epoch.
    pub const fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    /// Seconds since the epoch.
    pub fn get(self) -> f64 {
        self.milliseconds as f64 / 1000.0
    }
}

impl Add<Seconds> for Time {
    type Output = Self;
    fn add(self, span: Seconds) -> Self {
        Self { milliseconds: self.milliseconds.saturating_add(span.milliseconds) }
    }
}

/// How long `other` is past; zero when it is yet to come.
impl Sub for Time {
    type Output = Seconds;
    fn sub(self, other: Self) -> Seconds {
        Seconds { milliseconds: self.milliseconds.saturating_sub(other.milliseconds) }
    }
}

fn milliseconds(seconds: f64) -> Result<u64, OutOfRange> {
    let rounded = (seconds * 1000.0).round();
    // Above 2^53 a float no longer counts milliseconds one by one.
    if (0.0..9.0e15).contains(&rounded) {
        Ok(rounded as u64)
    } else {
        Err(OutOfRange { value: seconds, allowed: "a number of seconds from 0 to 9e12" })
    }
}

macro_rules! written_as_seconds {
    ($unit:ident) => {
        impl TryFrom<f64> for $unit {
            type Error = OutOfRange;
            fn try_from(seconds: f64) -> Result<Self, OutOfRange> {
                Self::new(seconds)
            }
        }

        impl From<$unit> for f64 {
            fn from(value: $unit) -> Self {
                value.get()
            }
        }

        impl fmt::Display for $unit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} s", self.get())
            }
        }
    };
}

written_as_seconds!(Seconds);
written_as_seconds!(Time);
