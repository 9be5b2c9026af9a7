//! First fit: the first device with enough memory.

use super::{Order, Policy, never};

pub(super) static POLICY: Policy = Policy {
    name: "ff",
    about: "first fit: the first GPU with enough memory",
    shares: true,
    screened: true,
    floor: true,
    order: Order::Position,
    objects: never,
};
