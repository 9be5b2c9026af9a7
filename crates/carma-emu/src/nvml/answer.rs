//! From the state to an answer in C.

use std::ffi::{c_char, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::library::machine;
use crate::state::{CallFault, NONE, Place, State};

/// NVML's number of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub(super) nvmlReturn_t);

impl Code {
    pub(super) const UNINITIALIZED: Self = Self(1);
    pub(super) const INVALID_ARGUMENT: Self = Self(2);
    pub(super) const NOT_SUPPORTED: Self = Self(3);
    pub(super) const NO_PERMISSION: Self = Self(4);
    pub(super) const NOT_FOUND: Self = Self(6);
    pub(super) const INSUFFICIENT_SIZE: Self = Self(7);
    pub(super) const DRIVER_NOT_LOADED: Self = Self(9);
    pub(super) const TIMEOUT: Self = Self(10);
    pub(super) const FUNCTION_NOT_FOUND: Self = Self(13);
    pub(super) const GPU_IS_LOST: Self = Self(15);
    pub(super) const OPERATING_SYSTEM: Self = Self(17);
    pub(super) const NO_DATA: Self = Self(21);
    pub(super) const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    pub(super) const UNKNOWN: Self = Self(999);
}

/// The answer of a call.
pub(super) type Answer<T> = Result<T, Code>;

/// A device's handle is its place: the GPU from 1 in the low byte, the instance from 1 above it. It is never followed as a pointer.
pub(super) fn handle(place: Place) -> nvmlDevice_t {
    let number = (place.gpu + 1) | place.instance.map_or(0, |instance| (instance + 1) << 8);
    std::ptr::without_provenance_mut(number)
}

fn place(state: &State<'_>, handle: nvmlDevice_t) -> Answer<Place> {
    let number = handle.addr();
    let place = Place { gpu: (number & 0xFF).wrapping_sub(1), instance: (number >> 8).checked_sub(1) };
    let gpu = state.gpus.get(place.gpu).ok_or(Code::INVALID_ARGUMENT)?;
    match place.instance {
        Some(instance) if gpu.instances.get(instance).is_none_or(|instance| instance.computes == 0) => Err(Code::INVALID_ARGUMENT),
        _ => Ok(place),
    }
}

/// Answers a call about no device in particular.
pub(super) fn of_system<T>(call: &str, act: impl FnOnce(&mut State<'_>) -> Answer<T>) -> Answer<T> {
    answer(call, |_| Ok(None), |state, _| act(state))
}

/// Answers a call about a device.
pub(super) fn of_device<T>(call: &str, device: nvmlDevice_t, act: impl FnOnce(&mut State<'_>, Place) -> Answer<T>) -> Answer<T> {
    let found = |state: &State<'_>| place(state, device).map(Some);
    answer(call, found, |state, place| match place {
        Some(place) if state.gpus[place.gpu].lost == 0 => act(state, place),
        _ => Err(Code::GPU_IS_LOST),
    })
}

/// Answers a call about a whole GPU; instances are not supported.
pub(super) fn of_gpu<T>(call: &str, device: nvmlDevice_t, act: impl FnOnce(&mut State<'_>, usize) -> Answer<T>) -> Answer<T> {
    of_device(call, device, |state, place| if place.instance.is_some() { Err(Code::NOT_SUPPORTED) } else { act(state, place.gpu) })
}

/// Whether the caller may configure GPUs; with real ones, only root may.
pub(super) fn permitted() -> Answer<()> {
    machine()?.check_rights().map_err(|_| Code::NO_PERMISSION)
}

/// Answers a call that sets up a whole GPU.
pub(super) fn of_gpu_as_root<T>(call: &str, device: nvmlDevice_t, act: impl FnOnce(&mut State<'_>, usize) -> Answer<T>) -> Answer<T> {
    of_gpu(call, device, |state, gpu| permitted().and_then(|()| act(state, gpu)))
}

/// Applies the fault that is set for a call: returns its error, or hangs while it is set. Otherwise runs the call.
fn answer<T>(
    call: &str,
    find: impl Fn(&State<'_>) -> Answer<Option<Place>>,
    act: impl FnOnce(&mut State<'_>, Option<Place>) -> Answer<T>,
) -> Answer<T> {
    let mut act = Some(act);
    loop {
        let answered = machine()?.with(|state| {
            let place = find(state)?;
            match (fault(state, call, place), act.take()) {
                (None, Some(act)) => act(state, place).map(Some),
                (None | Some(0), unused) => {
                    act = unused;
                    Ok(None)
                }
                (Some(code), _) => Err(Code(code)),
            }
        });
        match answered.map_err(|_| Code::DRIVER_NOT_LOADED)?? {
            Some(answer) => return Ok(answer),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// The code of the fault that is set for a call about a device, or about none. A name without a version means all versions.
fn fault(state: &State<'_>, call: &str, place: Option<Place>) -> Option<u32> {
    let names = ["", call, call.rsplit_once("_v").map_or(call, |(name, _)| name)];
    let meant = |fault: &&CallFault| {
        fault.used != 0
            && names.contains(&fault.call.get())
            && (fault.gpu == NONE || place.is_some_and(|place| fault.gpu as usize == place.gpu))
    };
    state.faults.iter().find(meant).filter(|_| !call.is_empty()).map(|fault| fault.code)
}

/// Catches panics: unwinding must not reach the calling program.
pub(super) fn guarded(call: impl FnOnce() -> nvmlReturn_t) -> nvmlReturn_t {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Code::UNKNOWN.0)
}

/// Writes an answer to the caller's pointer.
pub(super) unsafe fn put<T>(out: *mut T, answer: Answer<T>) -> nvmlReturn_t {
    let put = |value| {
        // SAFETY: the caller gives null or a place for one value, as NVML demands.
        let out = unsafe { out.as_mut() }.ok_or(Code::INVALID_ARGUMENT)?;
        *out = value;
        Ok(())
    };
    finish(answer.and_then(put))
}

/// Writes two answers that belong together.
pub(super) unsafe fn put_pair<A, B>((first, second): (*mut A, *mut B), answer: Answer<(A, B)>) -> nvmlReturn_t {
    let put = |(a, b)| {
        // SAFETY: as in `put`.
        let places = unsafe { (first.as_mut(), second.as_mut()) };
        let (Some(first), Some(second)) = places else { return Err(Code::INVALID_ARGUMENT) };
        (*first, *second) = (a, b);
        Ok(())
    };
    finish(answer.and_then(put))
}

/// Writes a list into room for `count`, which becomes its length; if the room is too small, `count` becomes the needed length.
pub(super) unsafe fn put_list<T>(count: *mut c_uint, out: *mut T, answer: Answer<Vec<T>>) -> nvmlReturn_t {
    let put = |list: Vec<T>| {
        // SAFETY: as in `put`.
        let count = unsafe { count.as_mut() }.ok_or(Code::INVALID_ARGUMENT)?;
        let room = std::mem::replace(count, list.len() as c_uint);
        if list.is_empty() {
            return Ok(());
        }
        if out.is_null() || (room as usize) < list.len() {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        // SAFETY: the caller gives room for as many as it says.
        list.into_iter().enumerate().for_each(|(place, item)| unsafe { out.add(place).write(item) });
        Ok(())
    };
    finish(answer.and_then(put))
}

/// A structure of the caller with its version in its first field.
pub(super) unsafe fn versioned<'a, T>(out: *mut T, version: u32) -> Answer<&'a mut T> {
    if out.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: it begins with its version, and is as long as that says.
    match unsafe { out.cast::<u32>().read() } {
        given if given == size_of::<T>() as u32 | version << 24 => Ok(unsafe { &mut *out }),
        _ => Err(Code::ARGUMENT_VERSION_MISMATCH),
    }
}

/// Writes a text with its closing zero into a buffer of this many characters.
pub(super) unsafe fn put_text(out: *mut c_char, room: u32, answer: Answer<impl AsRef<str>>) -> nvmlReturn_t {
    let put = |text: &str| {
        if out.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        if text.len() >= room as usize {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        // SAFETY: the caller gives room for that many characters, as NVML demands.
        let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), text.len() + 1) };
        out[..text.len()].copy_from_slice(text.as_bytes());
        out[text.len()] = 0;
        Ok(())
    };
    finish(answer.and_then(|text| put(text.as_ref())))
}

/// The number for how a call went.
pub(super) const fn finish(answer: Answer<()>) -> nvmlReturn_t {
    match answer {
        Ok(()) => 0,
        Err(code) => code.0,
    }
}
