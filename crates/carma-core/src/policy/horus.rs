//! Horus, a baseline of the field: expected GPU utilisations may sum to 100 %; the lowest sum goes first.

use super::{Order, Policy, Score};
use crate::job::JobSpec;
use crate::obstacle::Obstacle;
use crate::tenant::Tenant;

pub(super) static POLICY: Policy = Policy {
    name: "horus",
    about: "Horus: expected GPU utilisations add up to at most 100 %",
    shares: true,
    screened: false,
    floor: true,
    order: Order::Least(|facts| Score(parts_per_million(sum(facts.tenants)))),
    objects,
};

fn sum(tenants: &[Tenant]) -> f64 {
    tenants.iter().map(|tenant| tenant.utilisation.get()).sum()
}

/// Whole millionths, so that 0.7 + 0.3 is not more than 1.
fn parts_per_million(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

fn objects(job: &JobSpec, tenants: &[Tenant]) -> Option<Obstacle> {
    let together = sum(tenants) + job.expected_utilisation().get();
    let sum = parts_per_million(together);
    (!tenants.is_empty() && sum > 1_000_000).then_some(Obstacle::UtilisationSum { percent: sum.div_ceil(10_000) as u32 })
}
