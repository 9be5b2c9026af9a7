//! Settings as people write them: any subset of the keys, over a preset. Every number is checked before it counts.

use serde::{Deserialize, Serialize};

use super::check::{Checker, ConfigErrors};
use super::correction::CorrectionSettings;
use super::forecast::ForecastSettings;
use super::idle_holders::IdleHolderSettings;
use super::modes::ModeSettings;
use super::power::PowerSettings;
use super::presets::Preset;
use super::queue::QueueSettings;
use super::section::settings;
use super::slots::SlotSettings;
use super::{AdmissionConfig, Config, FirstWindow, Foreign, GateConfig, MpsConfig, RecoveryConfig, WindowConfig};
use crate::recovery::Rung;
use crate::risk::{Bound, RiskWeights, Screen};
use crate::telemetry::WindowRule;

settings!(
    /// A configuration file's content.
    Settings {
        /// Where to start from: `carma`, `standard`, `first`, `paper` or `aegis`; unset: `carma` for the policy of that name, else `standard`.
        preset: Preset,
        /// How jobs are mapped: a policy's name, with `est-` to go by estimates or `or-` to go by the floor alone.
        policy: String,
        /// Sample windows.
        window: WindowSettings,
        /// Weights of the risk score; they sum to one.
        risk: RiskSettings,
        /// The utilisation screen.
        screen: ScreenSettings,
        /// Who may share.
        admission: AdmissionSettings,
        /// The observation gate.
        gate: GateSettings,
        /// The queue.
        queue: QueueSettings,
        /// What happens after a crash.
        recovery: RecoverySettings,
        /// Limits for MPS clients.
        mps: MpsSettings,
        /// What is predicted of jobs that share, and how far that may go.
        forecast: ForecastSettings,
        /// Time slots.
        slots: SlotSettings,
        /// What is done about placements that turn out badly.
        correction: CorrectionSettings,
        /// Jobs that hold a GPU and do not use it.
        idle_holders: IdleHolderSettings,
        /// Power.
        power: PowerSettings,
        /// How GPUs are shared, where that may be chosen.
        modes: ModeSettings,
        /// How much users may have at once.
        quotas: QuotaSettings,
    }
);

settings!(
    /// Sample windows.
    WindowSettings {
        /// How far back a window reaches, in seconds.
        length: f64,
        /// Time between samples, in seconds.
        period: f64,
        /// A device not heard of for so many seconds takes nothing.
        stale_after: f64,
        /// What must wait for the first full window: `always` (every placement) or `to_share`.
        first: FirstWindow,
    }
);

settings!(
    /// Weights of the risk score.
    RiskSettings {
        /// Of the mean.
        mean: f64,
        /// Of the median.
        median: f64,
        /// Of the 95th percentile.
        p95: f64,
        /// Of the exponential moving average.
        ema: f64,
    }
);

settings!(
    /// The utilisation screen.
    ScreenSettings {
        /// Whether busy devices are kept from sharing at all.
        enabled: bool,
        /// Bound of SM activity.
        smact: f64,
        /// Bound of SM occupancy.
        smocc: f64,
        /// Bound of DRAM activity.
        drama: f64,
        /// Bound of GPU utilisation, for devices without profiling metrics.
        utilisation: f64,
    }
);

settings!(
    /// Who may share.
    AdmissionSettings {
        /// Free memory beyond a known or estimated need, in MiB.
        margin: f64,
        /// Memory of each device that is never given away, in MiB.
        guard: f64,
        /// The same as a share of the device's memory; the larger counts.
        guard_share: f64,
        /// Free memory for a job of which nothing is known, in MiB.
        floor: f64,
        /// A device with nobody on it and no more than this in use is idle, in MiB.
        idle_memory: f64,
        /// Most of our jobs on one device; 0: any number.
        jobs_per_gpu: f64,
        /// A device busier than this takes nothing more; 1: no cap.
        utilisation_cap: f64,
        /// Memory promised to a job counts as used before the job takes it.
        reservations: bool,
        /// Idle devices are used before any is shared.
        idle_first: bool,
        /// Devices that others use: `share` or `avoid`.
        foreign: Foreign,
    }
);

settings!(
    /// The observation gate.
    GateSettings {
        /// A newcomer must have been seen for longer than this before the next may come, in seconds.
        observe: f64,
        /// The same for a newcomer that does what was forecast, in seconds.
        confirmed: f64,
        /// The gate opens after so many seconds even if the newcomer was never seen; 0: never.
        patience: f64,
    }
);

settings!(
    /// What happens after a crash.
    RecoverySettings {
        /// What a job asks for after it ran out of memory, rung by rung.
        ladder: Vec<Rung>,
        /// Nothing is collocated while a job waits to be recovered.
        suspend_collocation: bool,
        /// How often a job is put back after losing a GPU or an MPS server.
        displacements: f64,
    }
);

settings!(
    /// Limits for MPS clients.
    MpsSettings {
        /// Share of the SMs a client may use, in percent; 100: all.
        active_threads: f64,
        /// Hold clients to their known need.
        limit_memory: bool,
    }
);

settings!(
    /// How much each user may have at once.
    QuotaSettings {
        /// Most jobs that run; 0: any number.
        jobs: f64,
        /// Most GPUs held, one that is shared counted for each of the jobs on it; 0: any number.
        gpus: f64,
        /// Most GPU memory promised, in MiB; 0: any amount.
        memory: f64,
        /// Users with a quota of their own.
        users: Vec<UserQuotaSettings>,
    }
);

/// A user's own quota; what is left out is as for everybody.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserQuotaSettings {
    /// The user's number.
    pub uid: u32,
    /// Most jobs that run; 0: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<f64>,
    /// Most GPUs held; 0: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<f64>,
    /// Most GPU memory promised, in MiB; 0: any amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
}

impl Settings {
    /// The configuration these settings make, or all that is wrong with them.
    ///
    /// ```
    /// use carma_core::{AdmissionSettings, Settings};
    /// let admission = AdmissionSettings { margin: Some(-5.0), ..Default::default() };
    /// let wrong = Settings { admission: Some(admission), ..Default::default() }.check().unwrap_err();
    /// assert_eq!(wrong.to_string(), "admission.margin = -5 is not allowed: give 0 to 1048576 MiB");
    /// ```
    pub fn check(&self) -> Result<Config, ConfigErrors> {
        let base = Config::from(self.preset.unwrap_or_else(|| Preset::for_policy(self.policy.as_deref())));
        let mut check = Checker::default();
        let config = Config {
            preset: base.preset,
            mapping: self.policy.as_ref().map_or(base.mapping, |name| check.policy("policy", name, base.mapping)),
            window: self.window.clone().unwrap_or_default().over(base.window, &mut check),
            risk: self.risk.clone().unwrap_or_default().over(base.risk, &mut check),
            screen: self.screen.clone().unwrap_or_default().over(base.screen, &mut check),
            admission: self.admission.clone().unwrap_or_default().over(base.admission, &mut check),
            gate: self.gate.clone().unwrap_or_default().over(base.gate, &mut check),
            queue: self.queue.clone().unwrap_or_default().over(&base.queue, &mut check),
            recovery: self.recovery.clone().unwrap_or_default().over(base.recovery, &mut check),
            mps: self.mps.clone().unwrap_or_default().over(base.mps, &mut check),
            forecast: self.forecast.clone().unwrap_or_default().over(base.forecast, &mut check),
            slots: self.slots.clone().unwrap_or_default().over(base.slots, &mut check),
            correction: self.correction.clone().unwrap_or_default().over(base.correction, &mut check),
            idle_holders: self.idle_holders.clone().unwrap_or_default().over(base.idle_holders, &mut check),
            power: self.power.clone().unwrap_or_default().over(base.power, &mut check),
            modes: self.modes.clone().unwrap_or_default().over(&base.modes, &mut check),
            quotas: self.quotas.clone().unwrap_or_default().over(&base.quotas, &mut check),
        };
        check.finish(config)
    }
}

impl WindowSettings {
    fn over(self, base: WindowConfig, check: &mut Checker) -> WindowConfig {
        // A window or a patience shorter than the time between samples cannot be, whichever of the two was changed.
        let period = check.seconds("window.period", self.period, base.rule.period, 0.01, 60.0);
        let length = check.seconds(
            "window.length",
            Some(self.length.unwrap_or(base.rule.length.get())),
            base.rule.length,
            period.get().max(1.0),
            3600.0,
        );
        let stale_after = check.seconds(
            "window.stale_after",
            Some(self.stale_after.unwrap_or(base.stale_after.get())),
            base.stale_after,
            period.get(),
            3600.0,
        );
        WindowConfig { rule: WindowRule { length, period }, stale_after, first: self.first.unwrap_or(base.first) }
    }
}

impl RiskSettings {
    fn over(self, base: RiskWeights, check: &mut Checker) -> RiskWeights {
        let weights = RiskWeights {
            mean: check.number("risk.mean", self.mean, base.mean, 0.0, 1.0, ""),
            median: check.number("risk.median", self.median, base.median, 0.0, 1.0, ""),
            p95: check.number("risk.p95", self.p95, base.p95, 0.0, 1.0, ""),
            ema: check.number("risk.ema", self.ema, base.ema, 0.0, 1.0, ""),
        };
        check.weights("risk", weights);
        weights
    }
}

impl ScreenSettings {
    fn over(self, base: Screen, check: &mut Checker) -> Screen {
        let limit = check.fraction("screen.smact", self.smact, base.smact.limit());
        Screen {
            enabled: self.enabled.unwrap_or(base.enabled),
            smact: if matches!(base.smact, Bound::Above(_)) { Bound::Above(limit) } else { Bound::AtLeast(limit) },
            smocc: self.smocc.map(|smocc| check.fraction("screen.smocc", Some(smocc), limit)).or(base.smocc),
            drama: self.drama.map(|drama| check.fraction("screen.drama", Some(drama), limit)).or(base.drama),
            utilisation: check.fraction("screen.utilisation", self.utilisation, base.utilisation),
        }
    }
}

impl AdmissionSettings {
    fn over(self, base: AdmissionConfig, check: &mut Checker) -> AdmissionConfig {
        let jobs_per_gpu = check.count("admission.jobs_per_gpu", self.jobs_per_gpu, base.jobs_per_gpu.unwrap_or(0), 0, 1000);
        AdmissionConfig {
            margin: check.memory("admission.margin", self.margin, base.margin),
            guard: check.memory("admission.guard", self.guard, base.guard),
            guard_share: check.fraction("admission.guard_share", self.guard_share, base.guard_share),
            floor: check.memory("admission.floor", self.floor, base.floor),
            idle_memory: check.memory("admission.idle_memory", self.idle_memory, base.idle_memory),
            jobs_per_gpu: (jobs_per_gpu > 0).then_some(jobs_per_gpu),
            utilisation_cap: check.fraction("admission.utilisation_cap", self.utilisation_cap, base.utilisation_cap),
            reservations: self.reservations.unwrap_or(base.reservations),
            idle_first: self.idle_first.unwrap_or(base.idle_first),
            foreign: self.foreign.unwrap_or(base.foreign),
        }
    }
}

impl GateSettings {
    fn over(self, base: GateConfig, check: &mut Checker) -> GateConfig {
        let patience = check.seconds("gate.patience", self.patience, base.patience.unwrap_or_default(), 0.0, 86_400.0);
        GateConfig {
            observe: check.seconds("gate.observe", self.observe, base.observe, 0.0, 3600.0),
            confirmed: check.seconds("gate.confirmed", self.confirmed, base.confirmed, 0.0, 3600.0),
            patience: (patience.get() > 0.0).then_some(patience),
        }
    }
}

impl RecoverySettings {
    fn over(self, base: RecoveryConfig, check: &mut Checker) -> RecoveryConfig {
        let ladder = self.ladder.unwrap_or(base.ladder);
        check.ladder("recovery.ladder", &ladder);
        RecoveryConfig {
            ladder,
            suspend_collocation: self.suspend_collocation.unwrap_or(base.suspend_collocation),
            displacements: check.count("recovery.displacements", self.displacements, base.displacements, 0, 1000),
        }
    }
}

impl MpsSettings {
    fn over(self, base: MpsConfig, check: &mut Checker) -> MpsConfig {
        let percent = check.count("mps.active_threads", self.active_threads, base.active_threads.unwrap_or(100).into(), 1, 100);
        MpsConfig { active_threads: (percent < 100).then_some(percent as u8), limit_memory: self.limit_memory.unwrap_or(base.limit_memory) }
    }
}
