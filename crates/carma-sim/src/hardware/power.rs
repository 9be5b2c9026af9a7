//! Power drawn by a GPU, from what runs on it.

use super::gpu_type::GpuType;
use crate::catalogue::RankProfile;

/// Watts above idle of a rank that has its GPU alone: as measured, else from SMACT and DRAMA. The constants are a fit to the
/// workloads of the shipped catalogue, which it meets to 8 % on average.
pub(crate) fn rank_power(kind: &GpuType, rank: &RankProfile) -> f64 {
    let scale = (kind.limit_watts - kind.idle_watts) / (GpuType::reference().limit_watts - GpuType::reference().idle_watts);
    let fitted = 30.6 + 242.2 * rank.smact.get() + 75.1 * rank.drama.get() - GpuType::reference().idle_watts;
    let above = rank.power.map_or(fitted * scale, |measured| measured.0 - kind.idle_watts);
    above.clamp(0.0, kind.limit_watts - kind.idle_watts)
}

/// Watts of a GPU, given the watts above idle of each rank on it and the rank's speed. What one rank draws, the others cannot draw
/// too: the part of the range up to the limit that is left idle shrinks with each.
pub fn device_power(kind: &GpuType, ranks: impl Iterator<Item = (f64, f64)>) -> f64 {
    let range = kind.limit_watts - kind.idle_watts;
    let left: f64 = ranks.map(|(watts, speed)| 1.0 - watts * speed / range).product();
    kind.idle_watts + range * (1.0 - left)
}

/// How fast ranks go on a GPU that may draw no more than `cap`, as a share of the speed at which it would draw `watts`. What is drawn above
/// idle goes with the clock to a power between 2 and 3, a rule of thumb for chips of this kind; 2.5 is an assumption, not a measurement.
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

/// A GPU never stands still, however low its limit.
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
        assert!(errors.len() > 45 && crate::mean(&errors) < 0.08, "{}", crate::mean(&errors));
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
