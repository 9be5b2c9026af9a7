//! Which part of a GPU's activity is whose.

use carma_core::Fraction;
use serde::{Deserialize, Serialize};

use super::look::Presence;

/// What a GPU's activity is shared out by, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Nobody else was there.
    #[default]
    Alone,
    /// By what the driver tells of each process' activity.
    Utilisation,
    /// By memory, where the driver tells no more.
    Memory,
    /// In equal parts, where it tells nothing.
    Equal,
}

/// The weight of each of those present, and what it goes by.
pub(super) fn shares(present: &[Presence]) -> (Basis, Vec<f64>) {
    let busy = || present.iter().map(|presence| presence.busy.map_or(0.0, Fraction::get)).collect::<Vec<f64>>();
    let held = || present.iter().map(|presence| presence.memory.map(|memory| memory.0 as f64)).collect::<Option<Vec<f64>>>();
    let weighs = |weights: &Vec<f64>| weights.iter().sum::<f64>() > 0.0;
    if present.len() <= 1 {
        return (Basis::Alone, vec![1.0; present.len()]);
    }
    let by_activity = Some(busy()).filter(weighs).map(|weights| (Basis::Utilisation, weights));
    let by_memory = || held().filter(weighs).map(|weights| (Basis::Memory, weights));
    by_activity.or_else(by_memory).unwrap_or_else(|| (Basis::Equal, vec![1.0; present.len()]))
}

#[cfg(test)]
mod tests {
    use super::super::look::Holder;
    use super::*;
    use carma_core::MiB;

    #[test]
    fn the_surest_that_is_told_counts() {
        let presence = |busy: Option<f64>, memory: Option<u64>| Presence {
            holder: Holder::Others,
            busy: busy.map(Fraction::clamped),
            memory: memory.map(MiB),
        };
        let of = |present: &[Presence]| shares(present);
        assert_eq!(of(&[presence(None, None)]), (Basis::Alone, vec![1.0]));
        assert_eq!(of(&[presence(Some(0.5), None), presence(None, Some(9))]), (Basis::Utilisation, vec![0.5, 0.0]));
        assert_eq!(of(&[presence(Some(0.0), Some(1)), presence(None, Some(3))]), (Basis::Memory, vec![1.0, 3.0]));
        assert_eq!(of(&[presence(None, Some(1)), presence(None, None)]), (Basis::Equal, vec![1.0, 1.0]));
        assert_eq!(of(&[]), (Basis::Alone, vec![]));
    }
}
