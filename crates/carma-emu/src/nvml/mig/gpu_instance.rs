//! GPU instances: their profiles and placements, creating and destroying them.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t,
};

use super::handle::{gpu_instance, of_gpu_instance};
use super::{name, profiles, put_all, put_second};
use crate::nvml::answer::{Answer, Code, finish, handle as device_handle, of_gpu, permitted, put};
use crate::nvml::declare::{aliases, calls};
use crate::profile::MigProfile;
use crate::state::{Place, State};

/// The kind of instance that the driver shows by this number.
fn by_id(state: &State<'_>, gpu: usize, id: c_uint) -> Answer<&'static MigProfile> {
    profiles(state, gpu)?.iter().find(|profile| profile.id == id).ok_or(Code::INVALID_ARGUMENT)
}

/// The profile with this NVML number.
fn by_slot(state: &State<'_>, gpu: usize, slot: c_uint) -> Answer<&'static MigProfile> {
    profiles(state, gpu)?.iter().find(|profile| profile.slot == slot).ok_or(Code::NOT_SUPPORTED)
}

/// NVML's description of an instance profile. Emulated GPUs have no media engines.
fn describe(state: &State<'_>, gpu: usize, profile: &MigProfile) -> nvmlGpuInstanceProfileInfo_t {
    nvmlGpuInstanceProfileInfo_t {
        id: profile.id,
        isP2pSupported: 0,
        sliceCount: profile.slices,
        instanceCount: profile.most(&profile.starts, state.profile(gpu).slices()),
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
fn describe_second(state: &State<'_>, gpu: usize, profile: &MigProfile, out: &mut nvmlGpuInstanceProfileInfo_v2_t) {
    let info = describe(state, gpu, profile);
    *out = nvmlGpuInstanceProfileInfo_v2_t {
        version: out.version,
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
        name: name(profile),
    };
}

fn create(state: &mut State<'_>, gpu: usize, id: c_uint, start: Option<u32>) -> Answer<nvmlGpuInstance_t> {
    permitted()?;
    let profile = by_id(state, gpu, id)?;
    Ok(gpu_instance(gpu, state.create_instance(gpu, profile, start)?))
}

calls! {
    fn nvmlDeviceGetGpuInstanceProfileInfo(device: nvmlDevice_t, slot: c_uint, info: *mut nvmlGpuInstanceProfileInfo_t) {
        put(info, of_gpu(CALL, device, |state, gpu| Ok(describe(state, gpu, by_slot(state, gpu, slot)?))))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoV(device: nvmlDevice_t, slot: c_uint, info: *mut nvmlGpuInstanceProfileInfo_v2_t) {
        put_second(info, |out| of_gpu(CALL, device, |state, gpu| { describe_second(state, gpu, by_slot(state, gpu, slot)?, out); Ok(()) }))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoByIdV(device: nvmlDevice_t, id: c_uint, info: *mut nvmlGpuInstanceProfileInfo_v2_t) {
        put_second(info, |out| of_gpu(CALL, device, |state, gpu| { describe_second(state, gpu, by_id(state, gpu, id)?, out); Ok(()) }))
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device: nvmlDevice_t, id: c_uint, items: *mut nvmlGpuInstancePlacement_t, count: *mut c_uint,
    ) {
        put_all(items, count, of_gpu(CALL, device, |state, gpu| {
            let profile = by_id(state, gpu, id)?;
            Ok(profile.starts.iter().map(|start| nvmlGpuInstancePlacement_t { start: *start, size: profile.span }).collect())
        }))
    }

    fn nvmlDeviceGetGpuInstanceRemainingCapacity(device: nvmlDevice_t, id: c_uint, count: *mut c_uint) {
        put(count, of_gpu(CALL, device, |state, gpu| Ok(state.remaining_instances(gpu, by_id(state, gpu, id)?))))
    }

    fn nvmlDeviceCreateGpuInstance(device: nvmlDevice_t, id: c_uint, out: *mut nvmlGpuInstance_t) {
        if out.is_null() { return Code::INVALID_ARGUMENT.0; }
        put(out, of_gpu(CALL, device, |state, gpu| create(state, gpu, id, None)))
    }

    fn nvmlDeviceCreateGpuInstanceWithPlacement(
        device: nvmlDevice_t, id: c_uint, placement: *const nvmlGpuInstancePlacement_t, out: *mut nvmlGpuInstance_t,
    ) {
        let placement = placement.as_ref().filter(|_| !out.is_null());
        put(out, of_gpu(CALL, device, |state, gpu| {
            let span = by_id(state, gpu, id)?.span;
            let placement = placement.filter(|placement| placement.size == span).ok_or(Code::INVALID_ARGUMENT)?;
            create(state, gpu, id, Some(placement.start))
        }))
    }

    fn nvmlDeviceGetGpuInstances(device: nvmlDevice_t, id: c_uint, items: *mut nvmlGpuInstance_t, count: *mut c_uint) {
        put_all(items, count, of_gpu(CALL, device, |state, gpu| {
            let profile = by_id(state, gpu, id)?;
            let of_kind = |(instance, _): &(usize, _)| state.instance_profile(gpu, *instance) == profile;
            Ok(state.instances(gpu).into_iter().filter(of_kind).map(|(instance, _)| gpu_instance(gpu, instance)).collect())
        }))
    }

    fn nvmlDeviceGetGpuInstanceById(device: nvmlDevice_t, id: c_uint, out: *mut nvmlGpuInstance_t) {
        put(out, of_gpu(CALL, device, |state, gpu| {
            let found = state.instances(gpu).into_iter().find(|(_, instance)| instance.id == id);
            found.map(|(instance, _)| gpu_instance(gpu, instance)).ok_or(Code::NOT_FOUND)
        }))
    }

    fn nvmlGpuInstanceGetInfo(handle: nvmlGpuInstance_t, info: *mut nvmlGpuInstanceInfo_t) {
        put(info, of_gpu_instance(CALL, handle, |state, gpu, instance| {
            let (record, profile) = (&state.gpus[gpu].instances[instance], state.instance_profile(gpu, instance));
            let placement = nvmlGpuInstancePlacement_t { start: record.start, size: profile.span };
            Ok(nvmlGpuInstanceInfo_t { device: device_handle(Place::gpu(gpu)), id: record.id, profileId: profile.id, placement })
        }))
    }

    fn nvmlGpuInstanceDestroy(handle: nvmlGpuInstance_t) {
        finish(of_gpu_instance(CALL, handle, |state, gpu, instance| permitted().and_then(|()| Ok(state.destroy_instance(gpu, instance)?))))
    }
}

aliases! {
    nvmlDeviceGetGpuInstancePossiblePlacements(
        device: nvmlDevice_t, id: c_uint, items: *mut nvmlGpuInstancePlacement_t, count: *mut c_uint
    ) = nvmlDeviceGetGpuInstancePossiblePlacements_v2;
}
