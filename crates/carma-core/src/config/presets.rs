//! Presets: the published systems by their published numbers, and our own start.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    AdmissionConfig, Config, CorrectionConfig, Discipline, FirstWindow, ForecastConfig, Foreign, GateConfig, IdleHolderConfig, ModeConfig,
    MpsConfig, PowerConfig, QueueConfig, QueueOrder, QuotaConfig, RecoveryConfig, SlotConfig, WindowConfig,
};
use crate::job::MemoryBasis;
use crate::mapping::{CARMA, MAGM, Mapping};
use crate::recovery::Rung;
use crate::risk::{Bound, RiskWeights, Screen};
use crate::telemetry::WindowRule;
use crate::units::{Fraction, MiB, Seconds};

/// Where a configuration starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Our own: predicted progress, the shortest first, nobody for ever.
    #[default]
    Carma,
    /// The paper's screen with reservations, backfill and a ladder of small steps.
    Standard,
    /// The first version of the published system: plain mean over 90 s, SM activity alone.
    First,
    /// The published system (arXiv 2508.19073, v2 and later).
    Paper,
    /// Its successor, AEGIS.
    Aegis,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 5] = [Self::Carma, Self::Standard, Self::First, Self::Paper, Self::Aegis];

    /// Where settings start from that name none: the rules that a policy was made for.
    pub(super) fn for_policy(policy: Option<&str>) -> Self {
        let ours = |name: &str| name.parse().is_ok_and(|mapping: Mapping| mapping.policy.name == CARMA.name);
        if policy.is_none_or(ours) { Self::Carma } else { Self::Standard }
    }

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Carma => "carma",
            Self::Standard => "standard",
            Self::First => "first",
            Self::Paper => "paper",
            Self::Aegis => "aegis",
        }
    }
}

/// A name that no preset has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no preset {0:?}: give carma, standard, first, paper or aegis")]
pub struct UnknownPreset(String);

impl FromStr for Preset {
    type Err = UnknownPreset;
    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}

/// What AEGIS climbs after a crash: quarters of the GPU, in steps of at most 8 GiB.
fn buckets() -> Rung {
    Rung::Buckets { shares: [0.25, 0.50, 0.75].map(Fraction::clamped).to_vec(), largest_step: MiB(8192) }
}

fn screen(smact: f64, smocc: f64, drama: f64) -> Screen {
    Screen {
        enabled: true,
        smact: Bound::AtLeast(Fraction::clamped(smact)),
        smocc: Some(Fraction::clamped(smocc)),
        drama: Some(Fraction::clamped(drama)),
        utilisation: Fraction::clamped(0.70),
    }
}

impl From<Preset> for Config {
    fn from(preset: Preset) -> Self {
        let paper = Self {
            preset,
            mapping: Mapping { policy: &MAGM, basis: MemoryBasis::Known },
            window: WindowConfig {
                rule: WindowRule { length: Seconds::from_secs(30), period: Seconds::from_secs(1) },
                stale_after: Seconds::from_secs(30),
                first: FirstWindow::Always,
            },
            risk: RiskWeights::PAPER,
            screen: screen(0.80, 0.45, 0.40),
            admission: AdmissionConfig {
                margin: MiB(2048),
                guard: MiB(512),
                guard_share: Fraction::ZERO,
                floor: MiB(5120),
                idle_memory: MiB(1024),
                jobs_per_gpu: None,
                utilisation_cap: Fraction::ONE,
                reservations: false,
                idle_first: true,
                foreign: Foreign::Share,
            },
            gate: GateConfig { observe: Seconds::from_secs(30), confirmed: Seconds::from_secs(30), patience: None },
            queue: QueueConfig::published(),
            recovery: RecoveryConfig { ladder: vec![Rung::WholeGpu], suspend_collocation: true, displacements: 3 },
            mps: MpsConfig { active_threads: None, limit_memory: true },
            quotas: QuotaConfig::default(),
            forecast: ForecastConfig::usual(),
            slots: SlotConfig::none(),
            correction: CorrectionConfig::none(),
            idle_holders: IdleHolderConfig::none(),
            power: PowerConfig::none(),
            modes: ModeConfig::none(),
        };
        match preset {
            Preset::Paper => paper,
            Preset::First => Self {
                window: WindowConfig { rule: WindowRule { length: Seconds::from_secs(90), ..paper.window.rule }, ..paper.window },
                risk: RiskWeights::FIRST,
                screen: Screen {
                    enabled: true,
                    smact: Bound::Above(Fraction::clamped(0.80)),
                    smocc: None,
                    drama: None,
                    utilisation: Fraction::clamped(0.70),
                },
                ..paper
            },
            Preset::Aegis => Self {
                risk: RiskWeights::AEGIS,
                screen: screen(0.65, 0.35, 0.50),
                admission: AdmissionConfig { margin: MiB(512), guard_share: Fraction::clamped(0.01), ..paper.admission },
                recovery: RecoveryConfig { ladder: vec![buckets(), Rung::WholeGpu], suspend_collocation: false, ..paper.recovery },
                ..paper
            },
            Preset::Standard => Self {
                window: WindowConfig { first: FirstWindow::ToShare, ..paper.window },
                // Reservations do what the published margin was for; 1 GiB covers what sums of peaks miss.
                admission: AdmissionConfig { margin: MiB(1024), reservations: true, ..paper.admission },
                // Twice the longest published delay from launch to first GPU activity.
                gate: GateConfig { patience: Some(Seconds::from_secs(120)), ..paper.gate },
                queue: QueueConfig { discipline: Discipline::Backfill { depth: 100 }, ..paper.queue },
                recovery: RecoveryConfig {
                    ladder: vec![Rung::Add(MiB(2048)), buckets(), Rung::WholeGpu],
                    suspend_collocation: false,
                    ..paper.recovery
                },
                correction: CorrectionConfig::standard(),
                ..paper
            },
            Preset::Carma => {
                let standard = Self::from(Preset::Standard);
                Self {
                    preset,
                    mapping: Mapping { policy: &CARMA, basis: MemoryBasis::Known },
                    queue: QueueConfig {
                        order: QueueOrder::Shortest,
                        ageing: 1.0,
                        reserve_after: Seconds::from_secs(8 * 3600),
                        critical: 2.0,
                        ..standard.queue
                    },
                    gate: GateConfig { confirmed: Seconds::from_secs(20), ..standard.gate },
                    admission: AdmissionConfig { margin: MiB(512), ..standard.admission },
                    // Chosen together on the 13 traces of docs/mapper.md: tighter limits refuse sharing that pays.
                    forecast: ForecastConfig { gain: 0.1, slowdown: 4.0, drama: 2.0, ..standard.forecast },
                    ..standard
                }
            }
        }
    }
}
