//! Round-robin: the next open device in the ring, however busy it is.

use super::{Order, Policy, never};

pub(super) static POLICY: Policy = Policy {
    name: "rr",
    about: "round-robin: the next open GPU in the ring, however busy",
    shares: true,
    screened: false,
    floor: false,
    order: Order::Ring,
    objects: never,
};
