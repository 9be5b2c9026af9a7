//! Exclusive: a device runs one job at a time.

use super::{Order, Policy, never};

pub(super) static POLICY: Policy = Policy {
    name: "exclusive",
    about: "the first idle GPU; no GPU is shared",
    shares: false,
    screened: false,
    floor: false,
    order: Order::Position,
    objects: never,
};
