//! Free ports for the daemons of a cluster, also when several test processes look for some at the same time.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process;

/// Below the ports that the kernel gives to outgoing connections.
const FIRST: u16 = 20_000;
const BLOCKS: u16 = 380;
/// Ports of a cluster: one for the controller, and one for each node.
pub(super) const EACH: u16 = 32;

/// Consecutive ports of this cluster alone.
#[derive(Debug)]
pub(super) struct Ports {
    /// The controller's port; those of the nodes follow.
    pub(super) controller: u16,
    /// Slurm uses no UDP: a bound UDP port is a lock that goes with its process, however that ends.
    _lock: UdpSocket,
}

impl Ports {
    /// Finds a free block of ports.
    pub(super) fn find(nodes: usize) -> Self {
        let count = u16::try_from(nodes + 1).ok().filter(|count| *count <= EACH);
        let count = count.unwrap_or_else(|| panic!("a cluster has at most {} nodes, not {nodes}", EACH - 1));
        let first = process::id() as u16 % BLOCKS;
        let blocks = (0..BLOCKS).map(|step| FIRST + (first + step) % BLOCKS * EACH);
        let lock = |controller| {
            let lock = UdpSocket::bind((Ipv4Addr::LOCALHOST, controller)).ok()?;
            let free = |port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok();
            (controller..controller + count).all(free).then_some(Self { controller, _lock: lock })
        };
        blocks.into_iter().find_map(lock).unwrap_or_else(|| panic!("there are no free ports for a cluster"))
    }

    /// The port of a node.
    pub(super) fn node(&self, index: usize) -> u16 {
        self.controller + 1 + index as u16
    }
}
