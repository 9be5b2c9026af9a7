//! Errors of memory.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlEccErrorCounts_t, nvmlRowRemapperHistogramValues_t};

use super::answer::{Answer, Code, finish, of_gpu, of_gpu_as_root, put, put_list, put_pair};
use super::declare::{aliases, calls, gpu_values};
use crate::state::State;

/// NVML's number of the architecture from which rows are remapped instead of pages retired.
const AMPERE: u32 = 7;
/// NVML's numbers of error locations: all are in the memory here.
const MEMORY: c_uint = 2;
const PLACES: c_uint = 8;

fn with_ecc(state: &State<'_>, gpu: usize) -> Answer<()> {
    if state.profile(gpu).facts.ecc { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

/// Errors of a kind: 0 is corrected, 1 is uncorrected.
pub(super) fn errors(state: &State<'_>, gpu: usize, kind: c_uint) -> Answer<c_ulonglong> {
    with_ecc(state, gpu)?;
    match kind {
        0 => Ok(state.gpus[gpu].ecc_corrected),
        1 => Ok(state.gpus[gpu].ecc_uncorrected),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

/// Newer GPUs with ECC remap rows, older ones retire pages; neither has happened here.
fn remaps(state: &State<'_>, gpu: usize, rows: bool) -> Answer<()> {
    with_ecc(state, gpu)?;
    if (state.profile(gpu).facts.architecture >= AMPERE) == rows { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

gpu_values! {
    nvmlDeviceGetRetiredPagesPendingStatus(c_uint) = |state, gpu| remaps(state, gpu, false).map(|()| 0);
    // Every bank has all its spare rows.
    nvmlDeviceGetRowRemapperHistogram(nvmlRowRemapperHistogramValues_t) = |state, gpu| {
        remaps(state, gpu, true).map(|()| nvmlRowRemapperHistogramValues_t { max: 640, high: 0, partial: 0, low: 0, none: 0 })
    };
    nvmlDeviceGetDefaultEccMode(c_uint) = |state, gpu| with_ecc(state, gpu).map(|()| 1);
}

calls! {
    fn nvmlDeviceGetEccMode(device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint) {
        put_pair((current, pending), of_gpu(CALL, device, |state, gpu| with_ecc(state, gpu).map(|()| (1, 1))))
    }

    // Counters since the last reset and over the lifetime are the same: these GPUs are never reset.
    fn nvmlDeviceGetTotalEccErrors(device: nvmlDevice_t, kind: c_uint, _counter: c_uint, count: *mut c_ulonglong) {
        put(count, of_gpu(CALL, device, |state, gpu| errors(state, gpu, kind)))
    }

    fn nvmlDeviceGetDetailedEccErrors(device: nvmlDevice_t, kind: c_uint, _counter: c_uint, counts: *mut nvmlEccErrorCounts_t) {
        let counted = |errors| nvmlEccErrorCounts_t { l1Cache: 0, l2Cache: 0, deviceMemory: errors, registerFile: 0 };
        put(counts, of_gpu(CALL, device, |state, gpu| errors(state, gpu, kind).map(counted)))
    }

    fn nvmlDeviceGetMemoryErrorCounter(device: nvmlDevice_t, kind: c_uint, _counter: c_uint, place: c_uint, count: *mut c_ulonglong) {
        put(count, of_gpu(CALL, device, |state, gpu| match (errors(state, gpu, kind)?, place) {
            (errors, MEMORY) => Ok(errors),
            (_, ..PLACES) => Ok(0),
            _ => Err(Code::INVALID_ARGUMENT),
        }))
    }

    fn nvmlDeviceClearEccErrorCounts(device: nvmlDevice_t, _counter: c_uint) {
        finish(of_gpu_as_root(CALL, device, |state, gpu| {
            with_ecc(state, gpu)?;
            (state.gpus[gpu].ecc_corrected, state.gpus[gpu].ecc_uncorrected) = (0, 0);
            Ok(())
        }))
    }

    fn nvmlDeviceGetRetiredPages(device: nvmlDevice_t, _cause: c_uint, count: *mut c_uint, addresses: *mut c_ulonglong) {
        put_list(count, addresses, of_gpu(CALL, device, |state, gpu| remaps(state, gpu, false).map(|()| Vec::new())))
    }

    fn nvmlDeviceGetRemappedRows(device: nvmlDevice_t, corrected: *mut c_uint, uncorrected: *mut c_uint, pending: *mut c_uint, failed: *mut c_uint) {
        match put_pair((corrected, uncorrected), of_gpu(CALL, device, |state, gpu| remaps(state, gpu, true).map(|()| (0, 0)))) {
            0 => put_pair((pending, failed), Ok((0, 0))),
            error => error,
        }
    }
}

/// There are no retired pages, and so no times of retirement.
unsafe fn retired_pages(
    device: nvmlDevice_t,
    cause: c_uint,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
    _times: *mut c_ulonglong,
) -> c_uint {
    // SAFETY: as NVML demands of its callers.
    unsafe { nvmlDeviceGetRetiredPages(device, cause, count, addresses) }
}

aliases! {
    nvmlDeviceGetRetiredPages_v2(
        device: nvmlDevice_t, cause: c_uint, count: *mut c_uint, addresses: *mut c_ulonglong, times: *mut c_ulonglong
    ) = retired_pages;
}
