//! PCI addresses and links of GPUs.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{nvmlBAR1Memory_t, nvmlPciInfo_t};

use super::declare::{device_values, gpu_values};
use crate::readings::pcie_generation;
use crate::state::State;

/// Lanes of a link.
const LANES: c_uint = 16;
/// BAR1 memory of a GPU that does not map all its memory.
const SMALL_WINDOW: u64 = 256 << 20;

fn characters<const N: usize>(text: &str) -> [c_char; N] {
    let mut all = [0; N];
    all[..N - 1].iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte.cast_signed());
    all
}

pub(super) fn pci_info(state: &State<'_>, gpu: usize) -> nvmlPciInfo_t {
    let id = state.gpus[gpu].bus_id();
    let device = state.profile(gpu).facts.device_id;
    nvmlPciInfo_t {
        busIdLegacy: characters(&id[4..]),
        domain: 0,
        bus: state.gpus[gpu].bus,
        device: 0,
        pciDeviceId: device,
        pciSubSystemId: device,
        busId: characters(&id),
    }
}

/// Transfers a second on each lane, in millions.
fn speed(state: &State<'_>, gpu: usize) -> c_uint {
    let generation = pcie_generation(state.profile(gpu).facts.architecture);
    8000 << (generation - 3)
}

device_values! {
    nvmlDeviceGetPciInfo_v3(nvmlPciInfo_t) = |state, place| Ok(pci_info(state, place.gpu));
}

/// The structure of earlier versions: the short id, and four or nine numbers.
#[repr(C)]
pub struct EarlierPciInfo<const N: usize> {
    bus_id: [c_char; 16],
    numbers: [c_uint; N],
}

fn earlier<const N: usize>(state: &State<'_>, gpu: usize) -> EarlierPciInfo<N> {
    let info = pci_info(state, gpu);
    let mut numbers = [0; N];
    let known = [info.domain, info.bus, info.device, info.pciDeviceId, info.pciSubSystemId];
    numbers.iter_mut().zip(known).for_each(|(place, number)| *place = number);
    EarlierPciInfo { bus_id: info.busIdLegacy, numbers }
}

device_values! {
    nvmlDeviceGetPciInfo(EarlierPciInfo<4>) = |state, place| Ok(earlier(state, place.gpu));
    nvmlDeviceGetPciInfo_v2(EarlierPciInfo<9>) = |state, place| Ok(earlier(state, place.gpu));
    // An instance has its part of the window.
    nvmlDeviceGetBAR1MemoryInfo(nvmlBAR1Memory_t) = |state, place| {
        let total = if state.profile(place.gpu).facts.ecc { state.memory(place).total.next_power_of_two() } else { SMALL_WINDOW };
        Ok(nvmlBAR1Memory_t { bar1Total: total, bar1Free: total, bar1Used: 0 })
    };
}

gpu_values! {
    nvmlDeviceGetCurrPcieLinkGeneration(c_uint) = |state, gpu| Ok(pcie_generation(state.profile(gpu).facts.architecture));
    nvmlDeviceGetMaxPcieLinkGeneration(c_uint) = |state, gpu| Ok(pcie_generation(state.profile(gpu).facts.architecture));
    nvmlDeviceGetGpuMaxPcieLinkGeneration(c_uint) = |state, gpu| Ok(pcie_generation(state.profile(gpu).facts.architecture));
    nvmlDeviceGetCurrPcieLinkWidth(c_uint) = |_, _| Ok(LANES);
    nvmlDeviceGetMaxPcieLinkWidth(c_uint) = |_, _| Ok(LANES);
    nvmlDeviceGetPcieSpeed(c_uint) = |state, gpu| Ok(speed(state, gpu));
    // Numbered from 2500 as 1, each twice the one before.
    nvmlDeviceGetPcieLinkMaxSpeed(c_uint) = |state, gpu| Ok(pcie_generation(state.profile(gpu).facts.architecture));
    nvmlDeviceGetPcieReplayCounter(c_uint) = |_, _| Ok(0);
    nvmlDeviceGetBusType(c_uint) = |_, _| Ok(2);
}
