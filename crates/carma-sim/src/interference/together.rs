//! Simulates jobs on one GPU from start to end, without anything else: used to score pairs and crowds.

use super::model::{InterferenceModel, Neighbours, RankInterference};
use carma_core::CollocationMode;

/// From launch to the first kernel, the published median.
pub(crate) const START_UP: f64 = 8.2;

/// A job to run beside others.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddedJob {
    pub(super) interference: RankInterference,
    /// Its time alone.
    pub(super) alone: f64,
    /// When it is launched.
    pub(super) launch: f64,
}

/// Time of each job from launch to end.
pub(super) fn run_together(model: &InterferenceModel, entrants: &[AddedJob]) -> Vec<f64> {
    let mut done = vec![0.0_f64; entrants.len()];
    let mut took: Vec<Option<f64>> = vec![None; entrants.len()];
    let mut now = 0.0;
    while took.iter().any(Option::is_none) {
        let under_way = |place: usize| took[place].is_none() && entrants[place].launch <= now;
        let on_gpu = |place: usize| under_way(place) && done[place] >= START_UP.min(entrants[place].alone);
        let speed = |place: usize| {
            if !on_gpu(place) {
                return 1.0;
            }
            let mut neighbours = Neighbours::default();
            let others = (0..entrants.len()).filter(|other| *other != place && on_gpu(*other));
            others.for_each(|other| neighbours.add(entrants[other].interference.pressure));
            1.0 / model.slowdown(entrants[place].interference.sensitivity, neighbours, CollocationMode::Streams)
        };
        let speeds: Vec<f64> = (0..entrants.len()).map(speed).collect();
        let next = |place: usize| {
            let entrant = &entrants[place];
            match (under_way(place), on_gpu(place)) {
                (false, _) => entrant.launch - now,
                (true, false) => START_UP.min(entrant.alone) - done[place],
                (true, true) => (entrant.alone - done[place]) / speeds[place],
            }
        };
        // Rounding must not stop the clock.
        let step = (0..entrants.len()).filter(|place| took[*place].is_none()).map(next).fold(f64::INFINITY, f64::min).max(1e-9);
        let running: Vec<usize> = (0..entrants.len()).filter(|place| under_way(*place)).collect();
        now += step;
        for place in running {
            done[place] += step * speeds[place];
            if done[place] >= entrants[place].alone - 1e-9 {
                took[place] = Some(now - entrants[place].launch);
            }
        }
    }
    took.into_iter().flatten().collect()
}
