//! Most available GPU memory (MAGM): the device that is least likely to run out.

use super::{Order, Policy, Score, never};

pub(crate) static POLICY: Policy = Policy {
    name: "magm",
    about: "most available GPU memory: the GPU with the most memory left",
    shares: true,
    screened: true,
    floor: true,
    order: Order::Least(|facts| Score(u64::MAX - facts.available.0)),
    objects: never,
};
