//! Presets: the published systems with their published values, and our own.

use std::str::FromStr;

use thiserror::Error;

use crate::choice;

choice! {
    /// The values that a configuration starts from.
    #[derive(Default)]
    Preset {
        /// Our own: predicted progress, the shortest job first, bounded waiting.
        #[default]
        Carma = "carma",
        /// The paper's screen with reservations, backfill and a ladder of small steps.
        Standard = "standard",
        /// The first version of the published system: plain mean over 90 s, SM activity alone.
        First = "first",
        /// The published system (arXiv 2508.19073, v2 and later).
        Paper = "paper",
        /// Its successor, AEGIS.
        Aegis = "aegis",
    }
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 5] = [Self::Carma, Self::Standard, Self::First, Self::Paper, Self::Aegis];

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

    /// What it is, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Carma => "our own: predicted progress, the shortest job first, bounded waiting",
            Self::Standard => "the paper's screen with reservations, backfill and a ladder of small steps",
            Self::First => "the first version of the published system: plain mean over 90 s, SM activity alone",
            Self::Paper => "the published system (arXiv 2508.19073, v2 and later)",
            Self::Aegis => "AEGIS, the successor of the published system",
        }
    }
}

/// A name that no preset has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown preset {0:?}: give carma, standard, first, paper or aegis")]
pub struct UnknownPreset(String);

impl FromStr for Preset {
    type Err = UnknownPreset;
    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}
