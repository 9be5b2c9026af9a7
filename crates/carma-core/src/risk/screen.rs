//! The utilisation screen: which GPUs are too busy to share.

use super::Risk;
use crate::keys::{Checker, KeyInfo, Kind, Setting};
use crate::obstacle::Obstacle;
use crate::section;
use crate::telemetry::Metric;
use crate::units::Fraction;

section! {
    /// The utilisation screen: a GPU is too busy to share when its SM activity reaches its bound and, where these are set,
    /// SM occupancy or DRAM activity reaches its own. A GPU without profiling metrics is judged by its utilisation.
    ScreenSettings => #[derive(Copy, Eq)] Screen {
        /// Whether busy GPUs are not shared.
        enabled: bool = true;
        /// Bound of SM activity.
        smact: Bound = Bound::AtLeast(share(0.80)), First: Bound::Above(share(0.80)), Aegis: Bound::AtLeast(share(0.65));
        /// Second bound: SM occupancy.
        smocc: Option<Fraction> = Some(share(0.45)), First: None, Aegis: Some(share(0.35));
        /// Second bound: DRAM activity.
        drama: Option<Fraction> = Some(share(0.40)), First: None, Aegis: Some(share(0.50));
        /// Bound of GPU utilisation, for GPUs without profiling metrics.
        utilisation: Fraction = share(0.70);
    }
}

const fn share(value: f64) -> Fraction {
    Fraction::clamped(value)
}

/// A threshold, and whether the threshold itself is too much. The second comes with the preset; files give the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Too much from here on: `>=`.
    AtLeast(Fraction),
    /// Too much past here: `>`.
    Above(Fraction),
}

impl Bound {
    /// Whether a score is too much.
    pub fn is_passed_by(self, score: Fraction) -> bool {
        match self {
            Self::AtLeast(limit) => score >= limit,
            Self::Above(limit) => score > limit,
        }
    }

    /// The threshold itself.
    pub const fn limit(self) -> Fraction {
        match self {
            Self::AtLeast(limit) | Self::Above(limit) => limit,
        }
    }
}

impl Setting for Bound {
    type Written = f64;
    type Value = Self;
    const KIND: Kind = <Fraction as Setting>::KIND;
    const RANGE: Option<(f64, f64)> = <Fraction as Setting>::RANGE;

    fn read(written: &f64, base: Option<&Self>, key: &KeyInfo, check: &mut Checker) -> Option<Self> {
        let limit = Fraction::read(written, None, key, check)?;
        Some(if matches!(base, Some(Self::Above(_))) { Self::Above(limit) } else { Self::AtLeast(limit) })
    }

    fn write(value: &Self) -> Option<f64> {
        Some(value.limit().get())
    }
}

impl Screen {
    /// What keeps a GPU of this risk out, if anything.
    pub fn objection(&self, risk: &Risk) -> Option<Obstacle> {
        if !self.enabled {
            return None;
        }
        let Some(smact) = risk.score(Metric::Smact) else {
            let score = risk.score(Metric::Utilisation).filter(|score| *score >= self.utilisation)?;
            return Some(Obstacle::Busy { metric: Metric::Utilisation, score, limit: self.utilisation, and: None });
        };
        if !self.smact.is_passed_by(smact) {
            return None;
        }
        let busy = |and| Some(Obstacle::Busy { metric: Metric::Smact, score: smact, limit: self.smact.limit(), and });
        let seconds = [(Metric::Smocc, self.smocc), (Metric::Drama, self.drama)];
        let known = || seconds.iter().filter_map(|(metric, limit)| Some((*metric, risk.score(*metric)?, (*limit)?)));
        if known().next().is_none() {
            // No second metric is configured or measured: SM activity alone decides.
            return busy(None);
        }
        let passed = known().find(|(_, score, limit)| score >= limit)?;
        busy(Some(passed))
    }
}
