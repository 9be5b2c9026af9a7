//! The shares of a GPU's activity.

use carma_core::Fraction;
use serde::{Deserialize, Serialize};

use super::usage_sample::GpuConsumer;

/// The basis for dividing a GPU's activity, the most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It was alone.
    #[default]
    Alone,
    /// By the activity of each process, if the driver reports it.
    Utilisation,
    /// By memory, if the driver reports no more.
    Memory,
    /// In equal parts, if it reports nothing.
    Equal,
}

/// The weight of each occupant, and its basis.
pub(super) fn shares(occupants: &[GpuConsumer]) -> (Basis, Vec<f64>) {
    let busy = || occupants.iter().map(|occupant| occupant.busy.map_or(0.0, Fraction::get)).collect::<Vec<f64>>();
    let held = || occupants.iter().map(|occupant| occupant.memory.map(|memory| memory.0 as f64)).collect::<Option<Vec<f64>>>();
    let weighs = |weights: &Vec<f64>| weights.iter().sum::<f64>() > 0.0;
    if occupants.len() <= 1 {
        return (Basis::Alone, vec![1.0; occupants.len()]);
    }
    let by_activity = Some(busy()).filter(weighs).map(|weights| (Basis::Utilisation, weights));
    let by_memory = || held().filter(weighs).map(|weights| (Basis::Memory, weights));
    by_activity.or_else(by_memory).unwrap_or_else(|| (Basis::Equal, vec![1.0; occupants.len()]))
}

#[cfg(test)]
mod tests {
    use super::super::usage_sample::Holder;
    use super::*;
    use carma_core::MiB;

    #[test]
    fn the_most_reliable_value_counts() {
        let occupant = |busy: Option<f64>, memory: Option<u64>| GpuConsumer {
            holder: Holder::Others,
            busy: busy.map(Fraction::clamped),
            memory: memory.map(MiB),
        };
        let of = |occupants: &[GpuConsumer]| shares(occupants);
        assert_eq!(of(&[occupant(None, None)]), (Basis::Alone, vec![1.0]));
        assert_eq!(of(&[occupant(Some(0.5), None), occupant(None, Some(9))]), (Basis::Utilisation, vec![0.5, 0.0]));
        assert_eq!(of(&[occupant(Some(0.0), Some(1)), occupant(None, Some(3))]), (Basis::Memory, vec![1.0, 3.0]));
        assert_eq!(of(&[occupant(None, Some(1)), occupant(None, None)]), (Basis::Equal, vec![1.0, 1.0]));
        assert_eq!(of(&[]), (Basis::Alone, vec![]));
    }
}
