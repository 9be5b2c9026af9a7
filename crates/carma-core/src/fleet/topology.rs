//! How close the GPUs of a server are to each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::DeviceId;

/// The path between two GPUs, the slowest first, in the words of `nvidia-smi topo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Between sockets (SYS).
    System,
    /// Between PCIe host bridges of one socket (NODE).
    Node,
    /// Through one PCIe host bridge (PHB).
    HostBridge,
    /// Through several PCIe switches (PXB).
    Switches,
    /// Through one PCIe switch (PIX).
    Switch,
    /// A number of NVLinks (NV#).
    NvLink(u8),
}

impl Link {
    /// A number that grows with closeness, for sums.
    fn closeness(self) -> u32 {
        match self {
            Self::System => 0,
            Self::Node => 1,
            Self::HostBridge => 2,
            Self::Switches => 3,
            Self::Switch => 4,
            Self::NvLink(links) => 4 + u32::from(links),
        }
    }
}

/// The links of one server, by the GPUs' ordinals; pairs that are not named count as the slowest.
///
/// ```
/// use carma_core::{Link, Topology};
/// let pairs = Topology::from(vec![(0, 1, Link::NvLink(12)), (2, 3, Link::NvLink(12)), (0, 2, Link::System)]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(u16, u16, Link)>", into = "Vec<(u16, u16, Link)>")]
pub struct Topology {
    links: BTreeMap<(u16, u16), Link>,
}

impl Topology {
    /// How close a device is to another.
    pub(crate) fn closeness(&self, a: DeviceId, b: DeviceId) -> u32 {
        let (a, b) = (a.gpu.ordinal, b.gpu.ordinal);
        self.links.get(&(a.min(b), a.max(b))).map_or(0, |link| link.closeness())
    }
}

impl From<Vec<(u16, u16, Link)>> for Topology {
    fn from(links: Vec<(u16, u16, Link)>) -> Self {
        Self { links: links.into_iter().map(|(a, b, link)| ((a.min(b), a.max(b)), link)).collect() }
    }
}

impl From<Topology> for Vec<(u16, u16, Link)> {
    fn from(topology: Topology) -> Self {
        topology.links.into_iter().map(|((a, b), link)| (a, b, link)).collect()
    }
}
