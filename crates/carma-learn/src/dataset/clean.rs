//! Drops rows that are not useful for training, each with a reason.

use std::collections::HashSet;
use std::fmt;

use crate::data::Observation;
use crate::evaluate::LARGEST_MIB;

/// Why a row was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The same network and batch size occur in an earlier row.
    Duplicate,
    /// Out of memory: the measured value is not the need.
    Crashed,
    /// No memory was measured.
    Unmeasured,
    /// Less memory than weights, gradients and two moments need.
    TooLittle,
    /// More memory than the device has.
    TooMuch,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Duplicate => "the same network and batch size stand above",
            Self::Crashed => "ran out of memory",
            Self::Unmeasured => "no memory measured",
            Self::TooLittle => "less memory than its weights, gradients and moments take",
            Self::TooMuch => "more memory than the device has",
        })
    }
}

/// Rows to keep although they have no valid measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Crashed runs: classifiers learn from them.
    pub crashed: bool,
}

/// Kept and dropped rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Cleaned {
    /// Kept rows, in order.
    pub kept: Vec<Observation>,
    /// Names of the dropped rows, with the reason.
    pub dropped: Vec<(String, Reason)>,
}

impl Cleaned {
    /// Number of dropped rows by reason.
    pub fn reasons(&self) -> Vec<(Reason, usize)> {
        let mut reasons: Vec<Reason> = self.dropped.iter().map(|(_, reason)| *reason).collect();
        reasons.sort_unstable();
        reasons.chunk_by(|one, other| one == other).map(|same| (same[0], same.len())).collect()
    }
}

/// Drops duplicates, crashed and impossible rows.
pub fn clean(observations: Vec<Observation>, keep: Keep) -> Cleaned {
    let mut seen = HashSet::new();
    let mut cleaned = Cleaned { kept: Vec::new(), dropped: Vec::new() };
    for observation in observations {
        let reason = if !seen.insert((observation.name.clone(), observation.batch)) {
            Some(Reason::Duplicate)
        } else if observation.crashed {
            (!keep.crashed).then_some(Reason::Crashed)
        } else {
            impossible(&observation)
        };
        match reason {
            Some(reason) => cleaned.dropped.push((observation.name, reason)),
            None => cleaned.kept.push(observation),
        }
    }
    cleaned
}

fn impossible(observation: &Observation) -> Option<Reason> {
    let Some(measured) = observation.measured else { return Some(Reason::Unmeasured) };
    let least = observation.stated_parameters.map_or(0.0, |parameters| parameters as f64 * 16.0 / f64::from(1 << 20));
    if measured <= 0.0 || measured < least {
        return Some(Reason::TooLittle);
    }
    (measured > LARGEST_MIB).then_some(Reason::TooMuch)
}
