//! Power of a GPU, from the processes on it.

use super::gpu_type::GpuType;
use crate::catalogue::RankProfile;

/// Watts above idle of a rank alone on its GPU: as measured, else from SMACT and DRAMA. The constants are fitted to the shipped
/// catalogue, with a mean error of 8 %.
pub(crate) fn rank_power(kind: &GpuType, rank: &RankProfile) -> f64 {
    let scale = (kind.limit_watts - kind.idle_watts) / (GpuType::reference().limit_watts - GpuType::reference().idle_watts);
    let fitted = 30.6 + 242.2 * rank.smact.get() + 75.1 * rank.drama.get() - GpuType::reference().idle_watts;
    let above = rank.power.map_or(fitted * scale, |measured| measured.0 - kind.idle_watts);
    above.clamp(0.0, kind.limit_watts - kind.idle_watts)
}

/// Watts of a GPU, from the watts above idle and the speed of each rank on it. Ranks compete for power: each one shrinks the
/// unused range below the limit.
pub fn device_power(kind: &GpuType, ranks: impl Iterator<Item = (f64, f64)>) -> f64 {
    let range = kind.limit_watts - kind.idle_watts;
    let left: f64 = ranks.map(|(watts, speed)| 1.0 - watts * speed / range).product();
    kind.idle_watts + range * (1.0 - left)
}

/// Speed of ranks on a GPU with power limit `cap`, relative to the speed at which it draws `watts`. Power above idle grows with the clock
/// to the power of 2 to 3, a rule of thumb for such chips; 2.5 is an assumption, not a measurement.
///
/// ```
/// use carma_sim::{GpuType, capped_speed};
/// let a100 = GpuType::reference();
/// assert_eq!(capped_speed(a100, 250.0, 300.0), 1.0);
/// let speed = capped_speed(a100, 400.0, 250.0);
/// assert!(speed > 0.75 && speed < 0.85);
/// ```
pub fn capped_speed(kind: &GpuType, watts: f64, cap: f64) -> f64 {
    if watts <= cap {
        return 1.0;
    }
    ((cap - kind.idle_watts).max(0.0) / (watts - kind.idle_watts)).powf(1.0 / 2.5).max(SLOWEST)
}

/// Lowest speed: a GPU never stops, however low its limit.
const SLOWEST: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn the_fit_meets_the_measured_workloads_to_eight_percent() {
        let kind = GpuType::reference();
        let catalogue = Catalogue::shipped();
        let ranks = catalogue.iter().flat_map(|(_, workload)| &workload.ranks);
        let errors: Vec<f64> = ranks
            .filter_map(|rank| {
                let fitted = kind.idle_watts + rank_power(kind, &RankProfile { power: None, ..*rank });
                Some((fitted / rank.power?.0 - 1.0).abs())
            })
            .collect();
        assert!(errors.len() > 45 && carma_core::mean(&errors) < 0.08, "{}", carma_core::mean(&errors));
    }

    #[test]
    fn together_they_draw_less_than_the_sum_and_never_more_than_the_limit() {
        let kind = GpuType::reference();
        let two = device_power(kind, [(200.0, 1.0), (200.0, 1.0)].into_iter());
        assert!(two > kind.idle_watts + 200.0 && two < kind.idle_watts + 400.0);
        assert!(device_power(kind, std::iter::repeat_n((348.0, 1.0), 5)) <= kind.limit_watts);
        assert!((device_power(kind, std::iter::empty()) - kind.idle_watts).abs() < 1e-9);
    }
}
