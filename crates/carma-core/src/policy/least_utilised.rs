//! Least utilised GPU (LUG): the device with the lowest SM activity.

use super::{Order, Policy, Score, never};
use crate::units::Fraction;

pub(super) static POLICY: Policy = Policy {
    name: "lug",
    about: "least utilised GPU: the GPU with the lowest SM activity",
    shares: true,
    screened: true,
    floor: true,
    order: Order::Least(|facts| {
        let busy = facts.risk.busy().map_or(Fraction::ZERO, |(_, score)| score);
        // The bits of a float that is not negative are ordered as the float is.
        Score(busy.get().to_bits())
    }),
    objects: never,
};
