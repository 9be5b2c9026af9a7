//! GPU instances: their kinds, where they fit, making and destroying them.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t, nvmlReturn_t,
};

use super::handle::{Handle, calls, gpu_instance};
use super::{profiles, put_list, put_v2, second_version};
use crate::nvml::answer::{Answer, Code, finish, handle as device_handle, put};
use crate::profile::MigProfile;
use crate::state::{Place, State};

/// The kind of instance that the driver shows by this number.
fn by_id(state: &State<'_>, place: Place, id: c_uint) -> Answer<&'static MigProfile> {
    profiles(state, place)?.iter().find(|profile| profile.id == id).ok_or(Code::INVALID_ARGUMENT)
}

/// The kind of instance that NVML asks for by this number.
fn by_slot(state: &State<'_>, place: Place, slot: c_uint) -> Answer<&'static MigProfile> {
    profiles(state, place)?.iter().find(|profile| profile.slot == slot).ok_or(Code::NOT_SUPPORTED)
}

/// What NVML says of a kind of instance. There are no engines for video and pictures in emulated GPUs.
fn describe(state: &State<'_>, place: Place, profile: &MigProfile) -> nvmlGpuInstanceProfileInfo_t {
    nvmlGpuInstanceProfileInfo_t {
        id: profile.id,
        isP2pSupported: 0,
        sliceCount: profile.slices,
        instanceCount: profile.most(&profile.starts, state.profile(place.gpu).slices()),
        multiprocessorCount: profile.multiprocessors,
        copyEngineCount: profile.slices,
        decoderCount: 0,
        encoderCount: 0,
        jpegCount: 0,
        ofaCount: 0,
        memorySizeMB: profile.memory,
    }
}

/// The same with its name.
fn describe_v2(state: &State<'_>, place: Place, profile: &MigProfile) -> nvmlGpuInstanceProfileInfo_v2_t {
    let info = describe(state, place, profile);
    nvmlGpuInstanceProfileInfo_v2_t {
        version: second_version::<nvmlGpuInstanceProfileInfo_v2_t>(),
        id: info.id,
        isP2pSupported: info.isP2pSupported,
        sliceCount: info.sliceCount,
        instanceCount: info.instanceCount,
        multiprocessorCount: info.multiprocessorCount,
        copyEngineCount: info.copyEngineCount,
        decoderCount: info.decoderCount,
        encoderCount: info.encoderCount,
        jpegCount: info.jpegCount,
        ofaCount: info.ofaCount,
        memorySizeMB: info.memorySizeMB,
        name: name(&format!("MIG {}", profile.name)),
    }
}

/// A name as NVML keeps it.
pub(super) fn name(text: &str) -> [c_char; 96] {
    let mut name = [0; 96];
    name[..95].iter_mut().zip(text.bytes()).for_each(|(room, byte)| *room = c_char::from_ne_bytes([byte]));
    name
}

fn placements(state: &State<'_>, place: Place, id: c_uint) -> Answer<Vec<nvmlGpuInstancePlacement_t>> {
    let profile = by_id(state, place, id)?;
    Ok(profile.starts.iter().map(|start| nvmlGpuInstancePlacement_t { start: *start, size: profile.span }).collect())
}

fn create(state: &mut State<'_>, place: Place, id: c_uint, start: Option<u32>) -> Answer<nvmlGpuInstance_t> {
    let profile = by_id(state, place, id)?;
    Ok(gpu_instance(place.gpu, state.create_instance(place.gpu, profile, start)?))
}

calls! {
    put: nvmlDeviceGetGpuInstanceProfileInfo(device: nvmlDevice_t, slot: c_uint; info: *mut nvmlGpuInstanceProfileInfo_t) =
        |state, place| Ok(describe(state, place, by_slot(state, place, slot)?));
    put_v2: nvmlDeviceGetGpuInstanceProfileInfoV(device: nvmlDevice_t, slot: c_uint; info: *mut nvmlGpuInstanceProfileInfo_v2_t) =
        |state, place| Ok(describe_v2(state, place, by_slot(state, place, slot)?));
    put_v2: nvmlDeviceGetGpuInstanceProfileInfoByIdV(device: nvmlDevice_t, id: c_uint; info: *mut nvmlGpuInstanceProfileInfo_v2_t) =
        |state, place| Ok(describe_v2(state, place, by_id(state, place, id)?));
    put_list: nvmlDeviceGetGpuInstancePossiblePlacements(
        device: nvmlDevice_t, id: c_uint; items: *mut nvmlGpuInstancePlacement_t, count: *mut c_uint
    ) = |state, place| placements(state, place, id);
    put_list: nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device: nvmlDevice_t, id: c_uint; items: *mut nvmlGpuInstancePlacement_t, count: *mut c_uint
    ) = |state, place| placements(state, place, id);
    put: nvmlDeviceGetGpuInstanceRemainingCapacity(device: nvmlDevice_t, id: c_uint; count: *mut c_uint) =
        |state, place| Ok(state.remaining_instances(place.gpu, by_id(state, place, id)?));
    put: nvmlDeviceCreateGpuInstance(device: nvmlDevice_t, id: c_uint; out: *mut nvmlGpuInstance_t) =
        |state, place| create(state, place, id, None);
    put_list: nvmlDeviceGetGpuInstances(device: nvmlDevice_t, id: c_uint; items: *mut nvmlGpuInstance_t, count: *mut c_uint) =
        |state, place| {
            let profile = by_id(state, place, id)?;
            let of_kind = |(instance, _): &(usize, _)| state.instance_profile(place.gpu, *instance) == profile;
            Ok(state.instances(place.gpu).into_iter().filter(of_kind).map(|(instance, _)| gpu_instance(place.gpu, instance)).collect())
        };
    put: nvmlDeviceGetGpuInstanceById(device: nvmlDevice_t, id: c_uint; out: *mut nvmlGpuInstance_t) = |state, place| {
        profiles(state, place)?;
        let found = state.instances(place.gpu).into_iter().find(|(_, instance)| instance.id == id);
        found.map(|(instance, _)| gpu_instance(place.gpu, instance)).ok_or(Code::NOT_FOUND)
    };
    put: nvmlGpuInstanceGetInfo(gpu_instance: nvmlGpuInstance_t; info: *mut nvmlGpuInstanceInfo_t) = |state, place| {
        let instance = super::instance(place)?;
        let (record, profile) = (&state.gpus[place.gpu].instances[instance], state.instance_profile(place.gpu, instance));
        Ok(nvmlGpuInstanceInfo_t {
            device: device_handle(Place::gpu(place.gpu)),
            id: record.id,
            profileId: profile.id,
            placement: nvmlGpuInstancePlacement_t { start: record.start, size: profile.span },
        })
    };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceCreateGpuInstanceWithPlacement(
    device: nvmlDevice_t,
    id: c_uint,
    placement: *const nvmlGpuInstancePlacement_t,
    out: *mut nvmlGpuInstance_t,
) -> nvmlReturn_t {
    // SAFETY: the caller gives null or a placement, as NVML demands.
    let placement = unsafe { placement.as_ref() };
    let answer = device.ask("nvmlDeviceCreateGpuInstanceWithPlacement", |state, place| {
        let placement = placement.ok_or(Code::INVALID_ARGUMENT)?;
        if placement.size == by_id(state, place, id)?.span {
            create(state, place, id, Some(placement.start))
        } else {
            Err(Code::INVALID_ARGUMENT)
        }
    });
    // SAFETY: as NVML demands of its callers.
    unsafe { put(out, answer) }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpuInstanceDestroy(gpu_instance: nvmlGpuInstance_t) -> nvmlReturn_t {
    finish(gpu_instance.ask("nvmlGpuInstanceDestroy", |state, place| Ok(state.destroy_instance(place.gpu, super::instance(place)?)?)))
}
