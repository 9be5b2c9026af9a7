//! Best fit: the device that will have the least memory left.

use super::{Order, Policy, Score, never};

pub(super) static POLICY: Policy = Policy {
    name: "bf",
    about: "best fit: the GPU with the least available memory that is enough",
    shares: true,
    screened: true,
    floor: true,
    order: Order::Least(|facts| Score(facts.available.0)),
    objects: never,
};
