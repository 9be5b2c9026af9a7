//! Distances between GPUs: NVLink, PCIe switches, sockets.

use carma_core::{Link, Topology};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus, TopologyLevel};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;
use nvml_wrapper_sys::bindings::NVML_NVLINK_MAX_LINKS;

use crate::driver::{DeviceCall, Driver, find};
use crate::error::DriverError;
use crate::identity::DeviceUuid;

/// A PCIe address: domain, bus, device.
type Address = (u32, u32, u32);

/// A GPU's own address, and the other ends of its NVLinks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ports {
    own: Address,
    /// Unset if the driver does not report it, as for some switches.
    remote: Vec<Option<Address>>,
}

/// The driver's facts about two GPUs.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ancestor: TopologyLevel,
    /// Whether NVLink connects them, directly or through switches.
    reachable: bool,
}

/// The links between GPUs, with these numbers. Pairs that the driver does not report are left out, and count as distant.
pub fn topology(driver: &Driver, gpus: &[(u16, DeviceUuid)]) -> Result<Topology, DriverError> {
    let ports = gpus.iter().map(|(_, gpu)| driver.device(gpu, "nvmlDeviceGetNvLinkState", |device| ports(device)));
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    // Links may lead to GPUs that are not among these; anything else is a switch.
    let all: Vec<Address> = ports.iter().map(|ports| ports.own).chain(addresses(driver)).collect();
    let mut links = Vec::new();
    for (first, second) in (0..gpus.len()).flat_map(|first| (first + 1..gpus.len()).map(move |second| (first, second))) {
        let ((number, gpu), (other_number, other)) = (&gpus[first], gpus[second].clone());
        let ask = move |device: &mut Device<'static>| pair(device, &other);
        match driver.device(gpu, "nvmlDeviceGetTopologyCommonAncestor", ask) {
            Err(DriverError::NotSupported { .. }) => {}
            pair => links.push((*number, other_number, link(pair?, &ports[first], &ports[second], &all))),
        }
    }
    Ok(links.into())
}

fn address(info: &PciInfo) -> Address {
    (info.domain, info.bus, info.device)
}

/// Addresses of the GPUs that the driver lists, as far as known.
fn addresses(driver: &Driver) -> Vec<Address> {
    let ask = |number| driver.begin_numbered(number, "nvmlDeviceGetPciInfo", |device| Ok(address(&device.pci_info()?)));
    let calls: Vec<_> = (0..driver.count().unwrap_or_default()).map(ask).collect();
    calls.into_iter().filter_map(|call| call.and_then(DeviceCall::wait).ok()).collect()
}

fn ports(device: &Device<'_>) -> Result<Ports, NvmlError> {
    let own = address(&device.pci_info()?);
    let links = (0..NVML_NVLINK_MAX_LINKS).map(|link| device.link_wrapper_for(link));
    // Links that are not there or not connected are errors of many kinds.
    let active = links.filter(|link| link.is_active().unwrap_or(false));
    Ok(Ports { own, remote: active.map(|link| link.remote_pci_info().ok().as_ref().map(address)).collect() })
}

fn pair(device: &Device<'static>, other: &DeviceUuid) -> Result<Pair, NvmlError> {
    let other = find(device.nvml(), other)?;
    let reachable = matches!(device.p2p_status(&other, P2pCapabilitiesIndex::NvLink), Ok(P2pStatus::Ok));
    Ok(Pair { ancestor: device.topology_common_ancestor(other)?, reachable })
}

/// The best path between two of all GPUs.
fn link(pair: Pair, first: &Ports, second: &Ports, all: &[Address]) -> Link {
    let direct = first.remote.iter().filter(|remote| **remote == Some(second.own)).count();
    // Links that end at no GPU end at a switch, whose bandwidth is that of the narrower side.
    let to_switches = |ports: &Ports| ports.remote.iter().filter(|remote| remote.is_none_or(|remote| !all.contains(&remote))).count();
    let switched = if pair.reachable { to_switches(first).min(to_switches(second)) } else { 0 };
    match (direct.max(switched), pair.ancestor) {
        (links @ 1.., _) => Link::NvLink(u8::try_from(links).unwrap_or(u8::MAX)),
        (_, TopologyLevel::Internal | TopologyLevel::Single) => Link::Switch,
        (_, TopologyLevel::Multiple) => Link::Switches,
        (_, TopologyLevel::HostBridge) => Link::HostBridge,
        (_, TopologyLevel::Node) => Link::Node,
        (_, TopologyLevel::System) => Link::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPUS: [Address; 4] = [(0, 7, 0), (0, 15, 0), (0, 71, 0), (0, 78, 0)];
    const SWITCH: Address = (0, 200, 0);
    const UNKNOWN: Address = (0, 0, 0);

    fn known(address: Address) -> Option<Address> {
        (address != UNKNOWN).then_some(address)
    }

    fn between(first: &[Address], second: &[Address], ancestor: TopologyLevel, reachable: bool) -> Link {
        let ports = |gpu: usize, remote: &[Address]| Ports { own: GPUS[gpu], remote: remote.iter().copied().map(known).collect() };
        link(Pair { ancestor, reachable }, &ports(0, first), &ports(1, second), &GPUS)
    }

    #[test]
    fn links_between_two_gpus_are_counted() {
        let remote = |gpu: usize| [GPUS[gpu], GPUS[gpu], GPUS[2]];
        assert_eq!(between(&remote(1), &remote(0), TopologyLevel::System, true), Link::NvLink(2));
        // Both are linked to a third GPU, which does not forward.
        assert_eq!(between(&[GPUS[2]], &[GPUS[2]], TopologyLevel::Node, true), Link::Node);
    }

    #[test]
    fn a_switch_has_the_bandwidth_of_its_narrower_side() {
        assert_eq!(between(&[SWITCH; 12], &[SWITCH; 10], TopologyLevel::System, true), Link::NvLink(10));
        assert_eq!(between(&[SWITCH; 12], &[SWITCH; 12], TopologyLevel::System, false), Link::System, "in another partition");
        assert_eq!(
            between(&[UNKNOWN; 18], &[UNKNOWN; 18], TopologyLevel::System, true),
            Link::NvLink(18),
            "what it does not tell is a switch"
        );
    }

    #[test]
    fn without_nvlink_the_common_bus_counts() {
        let found = [TopologyLevel::Single, TopologyLevel::Multiple, TopologyLevel::HostBridge, TopologyLevel::Node, TopologyLevel::System]
            .map(|ancestor| between(&[], &[], ancestor, false));
        assert_eq!(found, [Link::Switch, Link::Switches, Link::HostBridge, Link::Node, Link::System]);
    }
}
