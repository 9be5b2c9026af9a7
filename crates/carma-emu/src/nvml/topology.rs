//! Connections of GPUs: PCIe switches, sockets, NVLink. A plausible server, not a measured one.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlPciInfo_t};

use super::answer::{Answer, Code, handle, of_gpu, put, put_list};
use super::declare::{aliases, calls};
use super::pci::pci_info;
use crate::state::{Place, State};

/// NVML's numbers of the common ancestor of two GPUs.
const INTERNAL: c_uint = 0;
const SWITCHES: c_uint = 20;
const NODE: c_uint = 40;
const SYSTEM: c_uint = 50;
/// GPUs of a socket.
const SOCKET: usize = 4;
/// Cards with fewer links than this are bridged in pairs; others reach as many as their links allow.
const MESH: u32 = 6;
/// NVML's numbers of peer-to-peer capabilities, and of the answers.
const NVLINK: c_uint = 2;
const CAPABILITIES: c_uint = 5;
const OK: c_uint = 0;
const NO: c_uint = 5;

/// Two neighbours share a switch, four GPUs a socket.
pub(super) const fn common_ancestor(first: usize, second: usize) -> c_uint {
    if first == second {
        INTERNAL
    } else if first / 2 == second / 2 {
        SWITCHES
    } else if first / SOCKET == second / SOCKET {
        NODE
    } else {
        SYSTEM
    }
}

/// Which of `peers` GPUs of one kind is at the other end of a link of GPU `me`. Links are symmetric.
fn remote(me: usize, peers: usize, links: u32, link: u32) -> Option<usize> {
    if peers < 2 || link >= links {
        return None;
    }
    if links < MESH {
        return Some(me ^ 1).filter(|other| *other < peers);
    }
    // Alternately ahead and behind: 1, -1, 2, -2, ...; each equally often.
    let (links, link) = (links as usize, link as usize);
    let reached = if links < peers - 1 { links / 2 * 2 } else { peers - 1 };
    let offset = match link % reached {
        even if even % 2 == 0 => even / 2 + 1,
        odd => peers - odd.div_ceil(2),
    };
    (link < links / reached * reached).then(|| (me + offset) % peers)
}

/// The GPU at the other end of a link, if it is connected.
pub(super) fn linked(state: &State<'_>, gpu: usize, link: c_uint) -> Answer<Option<usize>> {
    let links = state.profile(gpu).facts.nvlinks;
    if links == 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    if link >= links {
        return Err(Code::INVALID_ARGUMENT);
    }
    let peers: Vec<usize> = (0..state.gpus.len()).filter(|other| state.gpus[*other].profile == state.gpus[gpu].profile).collect();
    let me = peers.iter().position(|other| *other == gpu).unwrap_or_default();
    Ok(remote(me, peers.len(), links, link).map(|place| peers[place]).filter(|other| state.gpus[*other].lost == 0))
}

fn at_other_end(state: &State<'_>, gpu: usize, link: c_uint) -> Answer<usize> {
    linked(state, gpu, link)?.ok_or(Code::NOT_SUPPORTED)
}

/// NVML's number of NVLink's version.
pub(super) const fn link_version(architecture: u32) -> c_uint {
    match architecture {
        ..=4 => 1,
        5 => 2,
        6 => 3,
        7 | 8 => 4,
        _ => 6,
    }
}

/// Both devices of a call, as whole GPUs.
fn of_both<T>(
    call: &str,
    (first, second): (nvmlDevice_t, nvmlDevice_t),
    act: impl FnOnce(&mut State<'_>, usize, usize) -> Answer<T>,
) -> Answer<T> {
    let second = of_gpu("", second, |_, gpu| Ok(gpu))?;
    of_gpu(call, first, |state, first| act(state, first, second))
}

calls! {
    fn nvmlDeviceGetTopologyCommonAncestor(first: nvmlDevice_t, second: nvmlDevice_t, level: *mut c_uint) {
        put(level, of_both(CALL, (first, second), |_, first, second| Ok(common_ancestor(first, second))))
    }

    fn nvmlDeviceGetTopologyNearestGpus(device: nvmlDevice_t, level: c_uint, count: *mut c_uint, devices: *mut nvmlDevice_t) {
        let answer = of_gpu(CALL, device, |state, gpu| {
            let near = |other: &usize| *other != gpu && common_ancestor(gpu, *other) <= level;
            Ok((0..state.gpus.len()).filter(near).map(|other| handle(Place::gpu(other))).collect::<Vec<_>>())
        });
        if devices.is_null() { put(count, answer.map(|near| near.len() as c_uint)) } else { put_list(count, devices, answer) }
    }

    fn nvmlDeviceOnSameBoard(first: nvmlDevice_t, second: nvmlDevice_t, same: *mut c_int) {
        put(same, of_both(CALL, (first, second), |_, first, second| Ok(c_int::from(first == second))))
    }

    fn nvmlDeviceGetP2PStatus(first: nvmlDevice_t, second: nvmlDevice_t, what: c_uint, status: *mut c_uint) {
        put(status, of_both(CALL, (first, second), |state, first, second| {
            let links = 0..state.profile(first).facts.nvlinks;
            let by_link = links.into_iter().any(|link| linked(state, first, link) == Ok(Some(second)));
            let alike = state.gpus[first].profile == state.gpus[second].profile;
            let whole = [first, second].iter().all(|gpu| state.gpus[*gpu].mig == 0);
            match what {
                NVLINK => Ok(if by_link && whole { OK } else { NO }),
                ..CAPABILITIES => Ok(if alike && whole && first != second { OK } else { NO }),
                _ => Err(Code::INVALID_ARGUMENT),
            }
        }))
    }

    fn nvmlDeviceGetNvLinkState(device: nvmlDevice_t, link: c_uint, active: *mut c_uint) {
        put(active, of_gpu(CALL, device, |state, gpu| linked(state, gpu, link).map(|other| other.is_some().into())))
    }

    fn nvmlDeviceGetNvLinkVersion(device: nvmlDevice_t, link: c_uint, version: *mut c_uint) {
        put(version, of_gpu(CALL, device, |state, gpu| linked(state, gpu, link).map(|_| link_version(state.profile(gpu).facts.architecture))))
    }

    fn nvmlDeviceGetNvLinkCapability(device: nvmlDevice_t, link: c_uint, capability: c_uint, offered: *mut c_uint) {
        // Reads, writes and atomics between GPUs, and a valid link; no access to the CPU's memory.
        let offers = |capability| match capability {
            0 | 2 | 5 => Ok(1),
            1 | 3 | 4 => Ok(0),
            _ => Err(Code::INVALID_ARGUMENT),
        };
        put(offered, of_gpu(CALL, device, |state, gpu| at_other_end(state, gpu, link).and_then(|_| offers(capability))))
    }

    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device: nvmlDevice_t, link: c_uint, pci: *mut nvmlPciInfo_t) {
        put(pci, of_gpu(CALL, device, |state, gpu| Ok(pci_info(state, at_other_end(state, gpu, link)?))))
    }

    fn nvmlDeviceGetNvLinkRemoteDeviceType(device: nvmlDevice_t, link: c_uint, kind: *mut c_uint) {
        put(kind, of_gpu(CALL, device, |state, gpu| at_other_end(state, gpu, link).map(|_| 0)))
    }

    fn nvmlDeviceGetNvLinkErrorCounter(device: nvmlDevice_t, link: c_uint, _counter: c_uint, value: *mut c_ulonglong) {
        put(value, of_gpu(CALL, device, |state, gpu| at_other_end(state, gpu, link).map(|_| 0)))
    }
}

aliases! {
    nvmlDeviceGetNvLinkRemotePciInfo(device: nvmlDevice_t, link: c_uint, pci: *mut nvmlPciInfo_t) = nvmlDeviceGetNvLinkRemotePciInfo_v2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_symmetric_and_evenly_distributed() {
        for (links, peers) in [(2, 4), (4, 3), (6, 8), (12, 2), (12, 4), (12, 8), (18, 8), (6, 16)] {
            let count = |from: usize, to: usize| (0..links).filter(|link| remote(from, peers, links, *link) == Some(to)).count();
            for (from, to) in (0..peers).flat_map(|from| (0..peers).map(move |to| (from, to))) {
                assert_eq!(count(from, to), count(to, from), "{links} links among {peers}: {from} and {to}");
            }
            assert!((0..peers).all(|gpu| count(gpu, gpu) == 0));
            assert!(count(0, 1) > 0);
        }
        assert_eq!(remote(0, 1, 12, 0), None);
    }
}
