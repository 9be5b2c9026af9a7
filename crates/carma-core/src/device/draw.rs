//! What a device is predicted to draw.

use super::Device;
use crate::power::{Load, PowerRange};
use crate::tenant::Tenant;

/// Whether measurements correct what is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The model alone.
    Model,
    /// The model, and what is measured beyond it.
    Measured,
}

impl Device {
    /// Between which watts its draw lies: as the driver reports, else as of an A100.
    pub fn power_range(&self) -> PowerRange {
        let typical = if self.id().instance.is_some() { PowerRange::A100.instance(1.0) } else { PowerRange::A100 };
        self.spec.power.unwrap_or(typical)
    }

    fn load(&self, basis: Basis) -> Load {
        let sum = |tenants: &mut dyn Iterator<Item = &Tenant>| tenants.fold(Load::NONE, |load, tenant| load.and(Load::of(tenant.profile)));
        let expected = sum(&mut self.tenants.iter());
        // What a GPU draws that is partitioned into instances is theirs.
        let power = (basis == Basis::Measured && !self.partitioned).then(|| self.telemetry.power()).flatten();
        power.map_or(expected, |power| {
            // The measurement does not include a new job that was not seen yet.
            let seen = sum(&mut self.tenants.iter().filter(|tenant| tenant.seen_at.is_some()));
            expected.and(Load::of_watts(power.mean, self.power_range()).beyond(seen))
        })
    }

    /// The power it would draw with this additional load.
    pub(crate) fn draw_with(&self, more: Load, basis: Basis) -> f64 {
        self.within_limit(self.load(basis).and(more))
    }

    /// The watts it would draw with nothing but this on it.
    pub(crate) fn draw_alone(&self, load: Load) -> f64 {
        self.within_limit(load)
    }

    fn within_limit(&self, load: Load) -> f64 {
        if self.lost {
            return 0.0;
        }
        let range = self.power_range();
        load.watts(range).min(self.power_limit.unwrap_or(range.limit).0)
    }

    /// How much of its power range its jobs leave.
    pub(crate) fn power_left(&self) -> f64 {
        self.load(Basis::Model).left()
    }
}
