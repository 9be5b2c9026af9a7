//! How much of a device's power range is in use.

use super::PowerRange;
use crate::forecast::InterferenceProfile;

/// A share of a device's power range, from 0 (it idles) to 1 (it draws all it can).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub(crate) struct Load(f64);

impl Load {
    /// Nothing runs.
    pub(crate) const NONE: Self = Self(0.0);

    /// All it can draw.
    pub(crate) const FULL: Self = Self(1.0);

    /// Of watts within a range.
    pub(crate) fn of_watts(watts: f64, range: PowerRange) -> Self {
        if range.span() > 0.0 { Self(((watts - range.idle.0) / range.span()).clamp(0.0, 1.0)) } else { Self::NONE }
    }

    /// Of a job that is alone. The constants are a fit to measured trainings on an A100; other devices are taken to draw the same share.
    pub(crate) fn of(job: InterferenceProfile) -> Self {
        Self::of_watts(30.6 + 242.2 * job.smact + 75.1 * job.drama, PowerRange::A100)
    }

    /// Both together: what one draws, the other cannot draw too.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self(1.0 - self.left() * other.left())
    }

    /// What has to come to another load to make this one; nothing where that is more already.
    #[must_use]
    pub(crate) fn beyond(self, other: Self) -> Self {
        if self.0 > other.0 { Self(1.0 - self.left() / other.left()) } else { Self::NONE }
    }

    /// The share that is not in use.
    pub(crate) fn left(self) -> f64 {
        1.0 - self.0
    }

    /// Watts of a device with this range.
    pub(crate) fn watts(self, range: PowerRange) -> f64 {
        range.idle.0 + range.span() * self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(smact: f64, drama: f64) -> Load {
        Load::of(InterferenceProfile { smact, drama, ..InterferenceProfile::IDLE })
    }

    #[test]
    fn a_busy_a100_draws_the_measured_power_and_an_idle_job_adds_none() {
        assert!((job(0.9, 0.4).watts(PowerRange::A100) - 278.6).abs() < 0.1);
        assert_eq!(job(0.0, 0.0), Load::NONE);
    }

    #[test]
    fn together_they_draw_more_than_each_and_less_than_the_sum() {
        let (one, both) = (job(0.6, 0.3), job(0.6, 0.3).and(job(0.6, 0.3)));
        let above = |load: Load| load.watts(PowerRange::A100) - 52.0;
        assert!(above(both) > above(one) && above(both) < 2.0 * above(one));
        assert!((0..50).fold(one, |sum, _| sum.and(one)).watts(PowerRange::A100) <= 400.0);
    }

    #[test]
    fn power_above_the_load_is_the_remainder() {
        let (estimated, measured) = (job(0.3, 0.1), job(0.7, 0.2));
        assert!((estimated.and(measured.beyond(estimated)).left() - measured.left()).abs() < 1e-12);
        assert_eq!(estimated.beyond(measured), Load::NONE);
    }
}
