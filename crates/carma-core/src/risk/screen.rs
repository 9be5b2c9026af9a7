//! The utilisation screen: which GPUs are too busy to share.

use super::Risk;
use crate::admission::Obstacle;
use crate::telemetry::Metric;
use crate::units::Fraction;

/// A threshold, and whether it is itself too much.
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

/// A GPU is out when its SM activity passes its bound and, where these are set, occupancy or DRAM activity pass theirs.
/// A GPU without profiling metrics is judged by its utilisation instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Whether anything is too busy at all.
    pub enabled: bool,
    /// Bound of SM activity.
    pub smact: Bound,
    /// Bound of SM occupancy, where it counts.
    pub smocc: Option<Fraction>,
    /// Bound of DRAM activity, where it counts.
    pub drama: Option<Fraction>,
    /// Bound of GPU utilisation, for want of SM activity.
    pub utilisation: Fraction,
}

impl Screen {
    /// What keeps a GPU of this risk out, if anything.
    pub fn objection(&self, risk: &Risk) -> Option<Obstacle> {
        if !self.enabled {
            return None;
        }
        let Some(smact) = risk.smact else {
            let score = risk.utilisation.filter(|score| *score >= self.utilisation)?;
            return Some(Obstacle::Busy { metric: Metric::Utilisation, score, limit: self.utilisation, and: None });
        };
        if !self.smact.is_passed_by(smact) {
            return None;
        }
        let busy = |and| Some(Obstacle::Busy { metric: Metric::Smact, score: smact, limit: self.smact.limit(), and });
        let seconds = [(Metric::Smocc, risk.smocc, self.smocc), (Metric::Drama, risk.drama, self.drama)];
        let known = || seconds.iter().filter_map(|(metric, score, limit)| Some((*metric, (*score)?, (*limit)?)));
        if known().next().is_none() {
            // No second opinion is asked for, or none can be had: SM activity alone decides.
            return busy(None);
        }
        let passed = known().find(|(_, score, limit)| score >= limit)?;
        busy(Some(passed))
    }
}
