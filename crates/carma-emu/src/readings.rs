//! Driver values that no model gives: temperatures, clocks, the fan, power limits.
//!
//! All of them are made up for display, so that tools have something plausible to print; CARMA itself does not use them. Power, utilisation,
//! memory and energy are different: they come from the state.

use std::ops::RangeInclusive;

use carma_sim::GpuType;

use crate::profile::Profile;
use crate::state::{Engine, Place, State, THROTTLED};

/// Clock of an idle GPU, in MHz.
const IDLE_CLOCK: u32 = 210;
/// Clock of its memory then, unless that is slower anyway.
const IDLE_MEMORY_CLOCK: u32 = 405;

/// NVML's bit of an idle GPU, among the reasons for lower clocks.
pub const IDLE: u64 = 1;
/// The bit of a GPU at its power limit.
pub const POWER_CAP: u64 = 4;

/// The driver's present values of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    /// Percent of the time that kernels ran.
    pub utilisation: u32,
    /// Percent of the time that memory was read or written: DRAMA, in percent.
    pub memory_utilisation: u32,
    /// Power in milliwatts.
    pub milliwatts: u32,
    /// Degrees Celsius.
    pub temperature: u32,
    /// The memory's.
    pub memory_temperature: u32,
    /// Percent of the fan's full speed, if it has one.
    pub fan: Option<u32>,
    /// 0 for the fastest, 8 without any process.
    pub performance_state: u32,
    /// MHz of the multiprocessors.
    pub sm_clock: u32,
    /// MHz of the memory.
    pub memory_clock: u32,
    /// NVML's bits of the reasons why it is no faster.
    pub throttle: u64,
}

impl Readings {
    /// From a GPU's activity, its power limit in milliwatts, and whether any process is on it.
    pub fn of(profile: &Profile, engine: &Engine, power_limit: u32, attached: bool) -> Self {
        let [_, _, drama, utilisation] = engine.levels;
        let milliwatts = (engine.watts * 1000.0).round() as u32;
        let warmth = (engine.watts / profile.kind.limit_watts).clamp(0.0, 1.0);
        let throttle = match (utilisation > 0.0, milliwatts >= power_limit) {
            (false, _) => IDLE,
            (true, true) => POWER_CAP,
            (true, false) => 0,
        };
        let facts = &profile.facts;
        let idle_memory_clock = facts.memory_clock.min(IDLE_MEMORY_CLOCK);
        let (performance_state, sm_clock, memory_clock) =
            if attached { (0, facts.sm_clock, facts.memory_clock) } else { (8, IDLE_CLOCK, idle_memory_clock) };
        Self {
            utilisation: percent(utilisation),
            memory_utilisation: percent(drama),
            milliwatts,
            temperature: 27 + (45.0 * warmth).round() as u32,
            memory_temperature: 30 + (55.0 * warmth).round() as u32,
            fan: facts.fan.then_some(30 + (55.0 * warmth).round() as u32),
            performance_state,
            sm_clock,
            memory_clock,
            throttle,
        }
    }
}

/// A level from 0 to 1 in whole percent.
pub fn percent(level: f64) -> u32 {
    (level.clamp(0.0, 1.0) * 100.0).round() as u32
}

/// Limits of power that can be set, in milliwatts: a quarter of the highest and up.
pub fn power_limits(kind: &GpuType) -> RangeInclusive<u32> {
    let most = (kind.limit_watts * 1000.0) as u32;
    most / 4..=most
}

/// The generation of PCIe of an architecture, by NVML's number of it.
pub const fn pcie_generation(architecture: u32) -> u32 {
    match architecture {
        ..=6 => 3,
        7 | 8 => 4,
        _ => 5,
    }
}

/// A process's part of a level, from its own and the total demand alone: parts of one GPU add up to no more than the whole.
pub fn part(own: f64, all: f64, level: f64) -> f64 {
    if all > level { own * level / all } else { own }
}

impl State<'_> {
    /// The driver's values of a GPU.
    pub fn readings(&self, gpu: usize) -> Readings {
        let record = &self.gpus[gpu];
        let attached = self.contexts_at(Place::gpu(gpu)).next().is_some();
        let mut readings = Readings::of(self.profile(gpu), &record.engine, record.power_limit, attached);
        if record.throttle != 0 {
            readings.throttle |= record.throttle;
            readings.sm_clock = (f64::from(readings.sm_clock) * THROTTLED) as u32;
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;

    fn readings(watts: f64, utilisation: f64, attached: bool) -> Readings {
        let profile = &Profile::all()[0];
        let engine = Engine { levels: [0.0, 0.0, 0.255, utilisation], watts, ..Engine::zeroed() };
        Readings::of(profile, &engine, 400_000, attached)
    }

    #[test]
    fn an_idle_gpu_is_cool_and_slow_and_a_busy_one_is_not() {
        let (idle, busy) = (readings(52.0, 0.0, false), readings(400.0, 1.0, true));
        assert_eq!((idle.milliwatts, idle.utilisation, idle.performance_state, idle.throttle), (52_000, 0, 8, IDLE));
        assert_eq!((busy.performance_state, busy.sm_clock, busy.memory_clock, busy.throttle), (0, 1410, 1215, POWER_CAP));
        assert!(idle.temperature < busy.temperature && busy.temperature < 90 && idle.sm_clock < busy.sm_clock);
        assert_eq!((busy.utilisation, busy.memory_utilisation, busy.fan), (100, 26, None));
    }

    #[test]
    fn parts_add_up_to_no_more_than_the_whole() {
        assert!((part(0.9, 1.8, 1.0) - 0.5).abs() < 1e-12);
        assert!((part(0.3, 0.5, 0.8) - 0.3).abs() < 1e-12);
    }
}
