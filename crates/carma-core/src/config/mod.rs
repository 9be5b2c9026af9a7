//! The rules in force: presets, the settings that change them, and the checked result.

mod check;
mod complete;
mod correction;
mod forecast;
mod idle_holders;
mod modes;
mod power;
mod presets;
mod queue;
mod quotas;
mod section;
mod settings;
mod slots;

pub use check::{ConfigError, ConfigErrors};
pub use correction::{CorrectionConfig, CorrectionSettings};
pub use forecast::{ForecastConfig, ForecastSettings};
pub use idle_holders::{IdleHolderConfig, IdleHolderSettings};
pub use modes::{ModeConfig, ModeSettings, SharingMode};
pub use power::{PowerConfig, PowerPreference, PowerSettings};
pub use presets::{Preset, UnknownPreset};
pub use queue::{Discipline, QueueConfig, QueueOrder, QueueSettings, ShareSettings, Shares};
pub use quotas::{OverQuota, Quota, QuotaConfig, QuotaUse};
pub use settings::{
    AdmissionSettings, GateSettings, MpsSettings, QuotaSettings, RecoverySettings, RiskSettings, ScreenSettings, Settings,
    UserQuotaSettings, WindowSettings,
};
pub use slots::{SlotConfig, SlotSettings};

use serde::{Deserialize, Serialize};

use crate::mapping::Mapping;
use crate::recovery::Rung;
use crate::risk::{RiskWeights, Screen};
use crate::telemetry::WindowRule;
use crate::units::{Fraction, MiB, Seconds, Time};

/// Everything a decision is made by. Made from [`Settings`], which are checked, or from a [`Preset`].
///
/// ```
/// use carma_core::{Config, Preset};
/// let config = Config::from(Preset::Paper);
/// assert_eq!(config.mapping.to_string(), "magm");
/// assert!(!config.admission.reservations);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What it was made from.
    pub preset: Preset,
    /// Which policy maps jobs to devices.
    pub mapping: Mapping,
    /// Sample windows.
    pub window: WindowConfig,
    /// How windows are scored.
    pub risk: RiskWeights,
    /// The utilisation screen.
    pub screen: Screen,
    /// Who may share.
    pub admission: AdmissionConfig,
    /// The observation gate.
    pub gate: GateConfig,
    /// The queue.
    pub queue: QueueConfig,
    /// What happens after a crash.
    pub recovery: RecoveryConfig,
    /// Limits for MPS clients.
    pub mps: MpsConfig,
    /// How much users may have at once.
    pub quotas: QuotaConfig,
    /// What is predicted of jobs that share, and how far that may go.
    pub forecast: ForecastConfig,
    /// Time slots.
    pub slots: SlotConfig,
    /// What is done about placements that turn out badly.
    pub correction: CorrectionConfig,
    /// Jobs that hold a GPU and do not use it.
    pub idle_holders: IdleHolderConfig,
    /// Power.
    pub power: PowerConfig,
    /// How GPUs are shared, where that may be chosen.
    pub modes: ModeConfig,
}

impl Default for Config {
    fn default() -> Self {
        Preset::default().into()
    }
}

/// Sample windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowConfig {
    /// How long, how often.
    pub rule: WindowRule,
    /// A device not heard of for so long takes nothing.
    pub stale_after: Seconds,
    /// What must wait for the first full window.
    pub first: FirstWindow,
}

/// What must wait until a device's first window is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstWindow {
    /// Every placement, as published.
    Always,
    /// Sharing only; an idle device is used after one reading.
    ToShare,
}

/// Who may share a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Free memory beyond a known or estimated need.
    pub margin: MiB,
    /// Memory of each device that is never given away.
    pub guard: MiB,
    /// The same as a share of the device's memory; the larger counts.
    pub guard_share: Fraction,
    /// Free memory for a job of which nothing is known.
    pub floor: MiB,
    /// A device with nobody on it and no more than this in use is idle.
    pub idle_memory: MiB,
    /// Most of our jobs on one device; unset: any number.
    pub jobs_per_gpu: Option<u32>,
    /// A device busier than this takes nothing more, whatever the screen says.
    pub utilisation_cap: Fraction,
    /// Memory promised to a job counts as used before the job takes it.
    pub reservations: bool,
    /// Idle devices are used before any is shared.
    pub idle_first: bool,
    /// What to do with devices that others use.
    pub foreign: Foreign,
}

impl AdmissionConfig {
    /// What is never given away of a device with this memory.
    pub fn guard_of(&self, memory: MiB) -> MiB {
        self.guard.max(memory.share(self.guard_share))
    }
}

/// What to do with devices on which processes from outside run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Foreign {
    /// Share them; their memory and load count as any other.
    Share,
    /// Leave them alone.
    Avoid,
}

/// The observation gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateConfig {
    /// A newcomer must have been seen for longer than this before the next may come.
    pub observe: Seconds,
    /// The same for a newcomer that does what was forecast.
    pub confirmed: Seconds,
    /// The gate opens after this even if the newcomer was never seen; unset: never.
    pub patience: Option<Seconds>,
}

impl GateConfig {
    /// When a gate opens that closed behind a newcomer; unset: not before it is seen.
    pub(crate) fn opens_after(&self, launched_at: Time, seen_at: Option<Time>) -> Option<Time> {
        let observed = seen_at.map(|seen| seen + self.observe + Seconds::TICK);
        observed.or_else(|| self.patience.map(|patience| launched_at + patience))
    }
}

/// What happens after a crash.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryConfig {
    /// What a job asks for after it ran out of memory.
    pub ladder: Vec<Rung>,
    /// Nothing is collocated while a job waits to be recovered.
    pub suspend_collocation: bool,
    /// How often a job is put back after losing a GPU or an MPS server.
    pub displacements: u32,
}

/// Limits for MPS clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpsConfig {
    /// Share of the SMs in percent; unset: all.
    pub active_threads: Option<u8>,
    /// Hold clients to their known need.
    pub limit_memory: bool,
}
