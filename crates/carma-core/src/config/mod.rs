//! The configuration of decisions: one table of keys, the presets, and the checked result.
//!
//! Each section is declared once, with type, range, defaults and documentation of its keys (`section!`), here or in the
//! module that it is about.

mod account;
mod admission;
mod correction;
mod enforce;
mod idle_jobs;
mod modes;
mod mps;
mod power;
mod queue;
mod quotas;
mod recovery;
mod shares;
mod time_slices;
mod window;

pub use admission::*;
pub use correction::*;
pub use enforce::*;
pub use idle_jobs::*;
pub use modes::*;
pub use mps::*;
pub use power::*;
pub use queue::*;
pub use quotas::*;
pub use recovery::*;
pub use shares::*;
pub use time_slices::*;
pub use window::*;

use serde::{Deserialize, Serialize};

use crate::forecast::ForecastConfig;
use crate::job::MemoryBasis;
use crate::keys::{Aim, Base, Checker, ConfigErrors, KeyInfo, Kind, Preset, Section, Setting};
use crate::policy::{CARMA, MAGM, Mapping, POLICIES};
use crate::risk::{RiskWeights, Screen};

/// Declares [`Settings`] and [`Config`] over the sections.
macro_rules! sections {
    ($preset_doc:literal, $aim_doc:literal, $policy_doc:literal; $($(#[doc = $doc:literal])+ $key:ident $(($old:literal))?: $section:ident,)+) => {
        /// A configuration as written: any of the keys, over a preset. Every value is checked before it counts.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Settings {
            #[doc = $preset_doc]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub preset: Option<Preset>,
            #[doc = $aim_doc]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub aim: Option<Aim>,
            #[doc = $policy_doc]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub policy: Option<String>,
            $($(#[doc = $doc])+ #[serde($(alias = $old,)? skip_serializing_if = "Option::is_none")] pub $key: Option<<$section as Setting>::Written>,)+
        }

        /// Every value that decisions depend on. Made from [`Settings`], which are checked, or from a [`Preset`].
        ///
        /// ```
        /// use carma_core::{Config, Preset};
        /// let config = Config::from(Preset::Paper);
        /// assert_eq!(config.mapping.to_string(), "magm");
        /// assert!(!config.admission.reservations);
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            #[doc = $preset_doc]
            pub preset: Preset,
            #[doc = $aim_doc]
            pub aim: Aim,
            #[doc = $policy_doc]
            pub mapping: Mapping,
            $($(#[doc = $doc])+ pub $key: $section,)+
        }

        impl Settings {
            /// Every key, in the order in which they are shown.
            pub const KEYS: &'static [KeyInfo] = &[
                KeyInfo { name: "preset", formerly: None, doc: $preset_doc, kind: <Preset as Setting>::KIND, range: None },
                KeyInfo { name: "aim", formerly: None, doc: $aim_doc, kind: <Aim as Setting>::KIND, range: None },
                KeyInfo { name: "policy", formerly: None, doc: $policy_doc, kind: Kind::Other("a policy"), range: None },
                $(KeyInfo {
                    name: stringify!($key),
                    formerly: $crate::section!(@formerly [$($old)?]),
                    doc: concat!($($doc),+),
                    kind: <$section as Setting>::KIND,
                    range: None,
                },)+
            ];

            /// The configuration that these settings make, or all mistakes in them.
            ///
            /// ```
            /// use carma_core::{AdmissionSettings, Settings};
            /// let admission = AdmissionSettings { margin: Some(-5.0), ..Default::default() };
            /// let wrong = Settings { admission: Some(admission), ..Default::default() }.check().unwrap_err();
            /// assert_eq!(wrong.to_string(), "admission.margin = -5 is not allowed: give a whole number from 0 to 1048576 MiB");
            /// ```
            pub fn check(&self) -> Result<Config, ConfigErrors> {
                let preset = self.preset.unwrap_or_else(|| preset_for(self.policy.as_deref()));
                let mut config = Config::new(preset, self.aim.unwrap_or_default());
                let mut check = Checker::default();
                if let Some(aim) = self.aim.filter(|aim| preset != Preset::Carma && *aim != Aim::Balanced) {
                    check.refuse_key("aim", format_args!("{:?}", aim.name()), "balanced: only preset carma has other aims".to_owned());
                }
                if let Some(name) = &self.policy {
                    match name.parse() {
                        Ok(mapping) => config.mapping = mapping,
                        Err(_) => check.refuse_key("policy", format_args!("{name:?}"), policies()),
                    }
                }
                $(if let Some(written) = &self.$key {
                    let key = &KeyInfo { name: stringify!($key), formerly: None, doc: "", kind: <$section as Setting>::KIND, range: None };
                    let read = check.inside(key.name, |check| $section::read(written, Some(&config.$key), key, check));
                    config.$key = read.unwrap_or(config.$key);
                })+
                check.finish(config)
            }
        }

        impl Config {
            /// The values of a preset for an aim, which matters to our own only.
            pub fn new(preset: Preset, aim: Aim) -> Self {
                let base = Base::of(preset, aim);
                let policy = base.value(&[(Base::Carma, || &CARMA)], || &MAGM);
                let mapping = Mapping { policy, basis: MemoryBasis::Known };
                Self { preset, aim, mapping, $($key: <$section as Section>::of(base),)+ }
            }
        }

        impl From<Preset> for Config {
            fn from(preset: Preset) -> Self {
                Self::new(preset, Aim::default())
            }
        }

        /// Every key with its value.
        impl From<&Config> for Settings {
            fn from(config: &Config) -> Self {
                let Config { preset, aim, mapping, .. } = config;
                Self { preset: Some(*preset), aim: Some(*aim), policy: Some(mapping.to_string()), $($key: $section::write(&config.$key),)+ }
            }
        }
    };
}

sections! {
    "The values to start from. Unset: `carma` for policy `carma` or none, else `standard`.",
    "What policy `carma` aims at: all figures, makespan and energy, or completion times and little slowdown.",
    "How jobs are mapped to GPUs.";
    /// Samples of GPUs, and the window over which they are averaged.
    window: WindowConfig,
    /// Weights of the statistics of a window in its score.
    risk: RiskWeights,
    /// The utilisation screen: which GPUs are too busy to share.
    screen: Screen,
    /// Which jobs may share a GPU.
    admission: AdmissionConfig,
    /// The observation gate: when the next job may join a GPU.
    gate: GateConfig,
    /// The queue: which job is next, which may pass it, and how users share.
    queue: QueueConfig,
    /// What happens after a crash.
    recovery: RecoveryConfig,
    /// Limits of MPS clients.
    mps: MpsConfig,
    /// Memory limits of jobs that the driver enforces: driver 615 or later, root, control groups of version 2, no MIG.
    enforce: EnforceConfig,
    /// Predictions for jobs that share a GPU, and their limits.
    forecast: ForecastConfig,
    /// Time slices.
    time_slices ("slots"): TimeSliceConfig,
    /// Correction of placements that turn out badly.
    correction: CorrectionConfig,
    /// Jobs that hold a GPU without using it.
    idle_jobs ("idle_holders"): IdleJobConfig,
    /// Power.
    power: PowerConfig,
    /// Sharing modes: idle GPUs are switched where that is predicted to pay.
    modes: ModeConfig,
    /// How much each user may use at once.
    quotas: QuotaConfig,
}

impl Default for Config {
    fn default() -> Self {
        Preset::default().into()
    }
}

/// The preset that a policy was made for; used where none is named.
fn preset_for(policy: Option<&str>) -> Preset {
    let ours = |name: &str| name.parse().is_ok_and(|mapping: Mapping| mapping.policy.name == CARMA.name);
    if policy.is_none_or(ours) { Preset::Carma } else { Preset::Standard }
}

/// The policies that may be named.
fn policies() -> String {
    let names: Vec<&str> = POLICIES.iter().map(|policy| policy.name).collect();
    format!("one of {}, optionally with the prefix est- or or-", names.join(", "))
}
