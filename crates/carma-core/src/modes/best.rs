//! The choice of a mode for an empty GPU.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::progress::{Progress, apart, together};
use crate::UserId;
use crate::config::Config;
use crate::forecast::InterferenceProfile;
use crate::sharing::{CollocationMode, GpuMode, MigLayout, Part, RequestedMode, SharingMode};
use crate::units::{MiB, Seconds};

/// A job that waits for one GPU or more, as far as the choice depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingJob {
    /// The user.
    pub user: UserId,
    /// Its interference with others, in both directions.
    pub profile: InterferenceProfile,
    /// Memory it needs.
    pub memory: MiB,
    /// It must have a GPU, or several, for itself.
    pub whole: bool,
    /// The mode it requests.
    pub requested: RequestedMode,
    /// How long it should take, where that is known.
    pub expected: Option<Seconds>,
}

impl WaitingJob {
    /// Whether it could run on a GPU with this memory that is shared this way.
    fn accepts(&self, mode: SharingMode, memory: MiB) -> bool {
        match mode {
            SharingMode::Streams => matches!(self.requested, RequestedMode::Auto | RequestedMode::Streams),
            SharingMode::Mps => matches!(self.requested, RequestedMode::Auto | RequestedMode::Mps),
            SharingMode::Mig => {
                let largest = MigLayout::ALL[0].parts(memory).first().map_or(MiB::ZERO, |part| part.memory);
                matches!(self.requested, RequestedMode::Auto | RequestedMode::Mig) && !self.whole && self.memory <= largest
            }
        }
    }
}

/// An empty GPU and its current mode.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentGpu {
    /// The memory of the whole GPU.
    pub memory: MiB,
    /// How it is shared.
    pub mode: SharingMode,
    /// Its instances, if it is partitioned.
    pub parts: Vec<Part>,
    /// The modes that its driver refused.
    pub refused: Vec<SharingMode>,
}

/// What is predicted of one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeForecast {
    /// The mode.
    pub mode: GpuMode,
    /// What the jobs do in it.
    pub progress: Progress,
}

/// Whether a GPU is switched, and what was predicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChoice {
    /// The new mode; unset: the mode does not change.
    pub mode: Option<GpuMode>,
    /// For how many jobs this was predicted.
    pub jobs: usize,
    /// Their progress in the present mode.
    pub as_it_is: Progress,
    /// Their progress in each allowed mode.
    pub prospects: Vec<ModeForecast>,
}

/// Chooses the sharing mode of a GPU for its part of the waiting jobs, which is every `nth`.
///
/// Another mode must gain `modes.gain` more, net of the switch, and must not exclude a waiting job. MPS serves one user
/// at a time, so it is no choice while jobs of several wait.
pub fn best_mode(gpu: &CurrentGpu, waiting: &[WaitingJob], nth: usize, config: &Config) -> ModeChoice {
    let ours: Vec<&WaitingJob> = waiting.iter().step_by(nth.max(1)).collect();
    let bound = config.forecast.slowdown;
    let most = if config.mapping.policy.shares { config.admission.jobs_per_gpu.map_or(usize::MAX, |most| most as usize) } else { 1 };
    let room = gpu.memory - config.admission.guard_of(gpu.memory);
    let whole = |mode| Progress::of(together(&ours, room, mode, most, bound));
    let progress = |mode: GpuMode| match mode {
        GpuMode::Streams => whole(CollocationMode::Streams),
        GpuMode::Mps => whole(CollocationMode::Mps { exclusive_process: false }),
        GpuMode::Mig(layout) => Progress::of(apart(&ours, layout.parts(gpu.memory), bound)),
    };
    let as_it_is = match gpu.mode {
        SharingMode::Streams => progress(GpuMode::Streams),
        SharingMode::Mps => progress(GpuMode::Mps),
        SharingMode::Mig => Progress::of(apart(&ours, gpu.parts.clone(), bound)),
    };
    let one_user = waiting.iter().all(|job| Some(job.user) == waiting.first().map(|first| first.user));
    let possible = |mode: SharingMode| {
        let taken_from_nobody = waiting.iter().all(|job| job.accepts(mode, gpu.memory) || !job.accepts(gpu.mode, gpu.memory));
        config.modes.allows(mode)
            && mode != gpu.mode
            && !gpu.refused.contains(&mode)
            && taken_from_nobody
            && (mode != SharingMode::Mps || one_user)
    };
    let modes = [GpuMode::Streams, GpuMode::Mps].into_iter().chain(MigLayout::ALL.map(GpuMode::Mig));
    let modes = modes.filter(|mode| possible(mode.sharing()));
    let prospects: Vec<ModeForecast> = modes.map(|mode| ModeForecast { mode, progress: progress(mode) }).collect();
    let known: Vec<f64> = ours.iter().filter_map(|job| job.expected).map(Seconds::get).collect();
    let span = if known.is_empty() { config.modes.every.get() } else { known.iter().sum::<f64>() / known.len() as f64 };
    let pays = |prospect: &&ModeForecast| {
        let cost = GpuMode::cost(gpu.mode, prospect.mode.sharing()).get();
        prospect.progress.get() * (span - cost) >= as_it_is.get() * span * (1.0 + config.modes.gain.get()) && prospect.progress > as_it_is
    };
    // The first of equals: the simpler mode, the larger instances.
    let best = prospects.iter().filter(pays).reduce(|best, next| if next.progress > best.progress { next } else { best });
    ModeChoice { mode: best.map(|prospect| prospect.mode), jobs: ours.len(), as_it_is, prospects }
}

impl fmt::Display for ModeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jobs are predicted to make a progress of {} in the present mode", self.jobs, self.as_it_is)?;
        let best = self.mode.and_then(|mode| self.prospects.iter().find(|prospect| prospect.mode == mode));
        best.map_or(Ok(()), |best| write!(f, ", and of {} with {}", best.progress, best.mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ModeSettings, Settings};

    const A100: MiB = MiB(40_960);

    fn allowing(allowed: &[SharingMode]) -> Config {
        let modes = Some(ModeSettings { allowed: Some(allowed.to_vec()), ..ModeSettings::default() });
        Settings { modes, ..Settings::default() }.check().unwrap()
    }

    fn anything() -> Config {
        allowing(&[SharingMode::Streams, SharingMode::Mps, SharingMode::Mig])
    }

    fn job(user: u32, smact: f64, memory: u64) -> WaitingJob {
        let pressure = smact * memory as f64 / 20_000.0;
        let profile = InterferenceProfile { pressure, sensitivity: 1.0, smact, drama: smact / 3.0, doubt: 0.0 };
        WaitingJob { user: UserId(user), profile, memory: MiB(memory), whole: false, requested: RequestedMode::Auto, expected: None }
    }

    fn whole(mode: SharingMode) -> CurrentGpu {
        CurrentGpu { memory: A100, mode, parts: Vec::new(), refused: Vec::new() }
    }

    fn chosen(waiting: &[WaitingJob], config: &Config) -> Option<GpuMode> {
        best_mode(&whole(SharingMode::Streams), waiting, 1, config).mode
    }

    #[test]
    fn jobs_of_one_user_that_fit_no_small_instance_share_by_mps() {
        let waiting = vec![job(1, 0.3, 7_000); 5];
        assert_eq!(chosen(&waiting, &anything()), Some(GpuMode::Mps));
    }

    #[test]
    fn small_equal_jobs_of_several_users_get_instances() {
        let waiting: Vec<WaitingJob> = (0..7).map(|user| job(user, 0.14, 4_000)).collect();
        assert_eq!(chosen(&waiting, &anything()), Some(GpuMode::Mig(MigLayout::Sevenths)));
        let heavy: Vec<WaitingJob> = (0..2).map(|user| job(user, 0.55, 18_000)).collect();
        assert_eq!(chosen(&heavy, &anything()), Some(GpuMode::Mig(MigLayout::FourThree)));
    }

    #[test]
    fn mps_serves_one_user_at_a_time() {
        let waiting = [vec![job(1, 0.3, 7_000); 4], vec![job(2, 0.3, 7_000)]].concat();
        assert_eq!(chosen(&waiting, &allowing(&[SharingMode::Streams, SharingMode::Mps])), None);
    }

    #[test]
    fn one_large_job_needs_the_whole_gpu_and_nothing_else() {
        assert_eq!(chosen(&[job(1, 0.95, 30_000)], &anything()), None);
        let cut = CurrentGpu { parts: MigLayout::TwoThrees.parts(A100), ..whole(SharingMode::Mig) };
        assert_eq!(best_mode(&cut, &[job(1, 0.95, 30_000)], 1, &anything()).mode, Some(GpuMode::Streams));
    }

    #[test]
    fn gpus_that_a_waiting_job_needs_are_not_switched() {
        let waiting: Vec<WaitingJob> = (0..7).map(|user| job(user, 0.14, 4_000)).collect();
        for needy in [WaitingJob { whole: true, ..job(1, 0.9, 4_000) }, job(1, 0.9, 30_000)] {
            let with = [&waiting[..], &[needy]].concat();
            assert_eq!(chosen(&with, &anything()), None);
        }
    }

    #[test]
    fn a_switch_must_pay_for_the_time_it_takes() {
        let waiting = |seconds| vec![WaitingJob { expected: Some(Seconds::from_secs(seconds)), ..job(1, 0.3, 7_000) }; 5];
        assert_eq!(chosen(&waiting(3_600), &anything()), Some(GpuMode::Mps));
        assert_eq!(chosen(&waiting(20), &anything()), None);
    }

    #[test]
    fn refused_and_forbidden_modes_are_not_chosen() {
        let waiting = vec![job(1, 0.3, 7_000); 5];
        let gpu = CurrentGpu { refused: vec![SharingMode::Mps], ..whole(SharingMode::Streams) };
        assert_eq!(best_mode(&gpu, &waiting, 1, &anything()).mode, None);
        assert_eq!(chosen(&waiting, &allowing(&[SharingMode::Streams])), None);
    }

    #[test]
    fn idle_gpus_share_the_waiting_jobs() {
        let waiting = vec![job(1, 0.3, 7_000); 5];
        let spread = best_mode(&whole(SharingMode::Streams), &waiting, 5, &anything());
        assert_eq!((spread.mode, spread.jobs), (None, 1));
    }
}
