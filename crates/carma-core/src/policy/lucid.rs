//! Lucid, a baseline of the field: two jobs a device, whose sharing scores may sum to 2.

use super::{Order, Policy, Score};
use crate::job::{JobSpec, SharingClass};
use crate::obstacle::Obstacle;
use crate::tenant::Tenant;

const JOBS: u32 = 2;
const SCORES: u32 = 2;

pub(super) static POLICY: Policy = Policy {
    name: "lucid",
    about: "Lucid: at most two jobs per GPU, with sharing scores that add up to at most 2",
    shares: true,
    screened: false,
    floor: true,
    order: Order::Least(|facts| Score(u64::from(sum(facts.tenants)))),
    objects,
};

const fn points(class: SharingClass) -> u32 {
    match class {
        SharingClass::Tiny => 0,
        SharingClass::Medium => 1,
        SharingClass::Jumbo => 2,
    }
}

fn sum(tenants: &[Tenant]) -> u32 {
    tenants.iter().map(|tenant| points(tenant.sharing)).sum()
}

fn objects(job: &JobSpec, tenants: &[Tenant]) -> Option<Obstacle> {
    if tenants.len() as u32 >= JOBS {
        return Some(Obstacle::JobLimit { limit: JOBS });
    }
    let sum = sum(tenants) + points(job.sharing_class());
    (!tenants.is_empty() && sum > SCORES).then_some(Obstacle::SharingScore { sum, limit: SCORES })
}
