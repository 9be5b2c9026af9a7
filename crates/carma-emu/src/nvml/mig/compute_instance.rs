//! Compute instances: each GPU instance can have one that spans all of it. Smaller ones are not emulated, and the calls report that.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlComputeInstance_t, nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlGpuInstance_t,
};

use super::handle::{compute_instance, gpu_instance, of_compute_instance, of_gpu_instance};
use super::{name, put_all, put_second};
use crate::nvml::answer::{Answer, Code, finish, handle as device_handle, permitted, put};
use crate::nvml::declare::{aliases, calls};
use crate::profile::MigProfile;
use crate::state::{Place, State};

/// NVML's number of the compute instance that spans a GPU instance, for queries and for display: they are numbered by slices.
fn number(profile: &MigProfile) -> Answer<c_uint> {
    let place = [1, 2, 3, 4, 7, 8, 6].iter().position(|slices| *slices == profile.slices);
    place.map(|place| place as c_uint).ok_or(Code::NOT_SUPPORTED)
}

/// Answers a call about a compute instance profile. The compute instances of a GPU instance share its engines: NVML has no other mode.
fn of_kind<T>(
    call: &str,
    handle: nvmlGpuInstance_t,
    (id, engines): (c_uint, c_uint),
    act: impl FnOnce(&mut State<'_>, usize, usize, &'static MigProfile) -> Answer<T>,
) -> Answer<T> {
    of_gpu_instance(call, handle, |state, gpu, instance| {
        let profile = state.instance_profile(gpu, instance);
        if (number(profile)?, 0) == (id, engines) { act(state, gpu, instance, profile) } else { Err(Code::NOT_SUPPORTED) }
    })
}

fn describe(profile: &MigProfile, id: c_uint) -> nvmlComputeInstanceProfileInfo_t {
    nvmlComputeInstanceProfileInfo_t {
        id,
        sliceCount: profile.slices,
        instanceCount: 1,
        multiprocessorCount: profile.multiprocessors,
        sharedCopyEngineCount: profile.slices,
        sharedDecoderCount: 0,
        sharedEncoderCount: 0,
        sharedJpegCount: 0,
        sharedOfaCount: 0,
    }
}

fn describe_second(profile: &MigProfile, id: c_uint, out: &mut nvmlComputeInstanceProfileInfo_v2_t) {
    let info = describe(profile, id);
    *out = nvmlComputeInstanceProfileInfo_v2_t {
        version: out.version,
        id: info.id,
        sliceCount: info.sliceCount,
        instanceCount: info.instanceCount,
        multiprocessorCount: info.multiprocessorCount,
        sharedCopyEngineCount: info.sharedCopyEngineCount,
        sharedDecoderCount: info.sharedDecoderCount,
        sharedEncoderCount: info.sharedEncoderCount,
        sharedJpegCount: info.sharedJpegCount,
        sharedOfaCount: info.sharedOfaCount,
        name: name(profile),
    };
}

/// The compute instance of a GPU instance, if any.
fn existing(state: &State<'_>, gpu: usize, instance: usize) -> Option<nvmlComputeInstance_t> {
    (state.gpus[gpu].instances[instance].computes != 0).then(|| compute_instance(gpu, instance))
}

fn create(state: &mut State<'_>, gpu: usize, instance: usize) -> Answer<nvmlComputeInstance_t> {
    permitted()?;
    state.create_compute_instance(gpu, instance)?;
    Ok(compute_instance(gpu, instance))
}

calls! {
    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        handle: nvmlGpuInstance_t, slot: c_uint, engines: c_uint, info: *mut nvmlComputeInstanceProfileInfo_t,
    ) {
        put(info, of_kind(CALL, handle, (slot, engines), |_, _, _, profile| Ok(describe(profile, slot))))
    }

    fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        handle: nvmlGpuInstance_t, slot: c_uint, engines: c_uint, info: *mut nvmlComputeInstanceProfileInfo_v2_t,
    ) {
        put_second(info, |out| of_kind(CALL, handle, (slot, engines), |_, _, _, profile| { describe_second(profile, slot, out); Ok(()) }))
    }

    fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(handle: nvmlGpuInstance_t, id: c_uint, count: *mut c_uint) {
        put(count, of_kind(CALL, handle, (id, 0), |state, gpu, instance, _| Ok(existing(state, gpu, instance).is_none().into())))
    }

    fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        handle: nvmlGpuInstance_t, id: c_uint, items: *mut nvmlComputeInstancePlacement_t, count: *mut c_uint,
    ) {
        let all = |profile: &MigProfile| vec![nvmlComputeInstancePlacement_t { start: 0, size: profile.slices }];
        put_all(items, count, of_kind(CALL, handle, (id, 0), |_, _, _, profile| Ok(all(profile))))
    }

    fn nvmlGpuInstanceCreateComputeInstance(handle: nvmlGpuInstance_t, id: c_uint, out: *mut nvmlComputeInstance_t) {
        if out.is_null() { return Code::INVALID_ARGUMENT.0; }
        put(out, of_kind(CALL, handle, (id, 0), |state, gpu, instance, _| create(state, gpu, instance)))
    }

    fn nvmlGpuInstanceCreateComputeInstanceWithPlacement(
        handle: nvmlGpuInstance_t, id: c_uint, placement: *const nvmlComputeInstancePlacement_t, out: *mut nvmlComputeInstance_t,
    ) {
        let placement = placement.as_ref().filter(|_| !out.is_null()).map(|placement| (placement.start, placement.size));
        put(out, of_kind(CALL, handle, (id, 0), |state, gpu, instance, profile| match placement {
            Some(placement) if placement == (0, profile.slices) => create(state, gpu, instance),
            _ => Err(Code::INVALID_ARGUMENT),
        }))
    }

    fn nvmlGpuInstanceGetComputeInstances(handle: nvmlGpuInstance_t, id: c_uint, items: *mut nvmlComputeInstance_t, count: *mut c_uint) {
        put_all(items, count, of_kind(CALL, handle, (id, 0), |state, gpu, instance, _| Ok(existing(state, gpu, instance).into_iter().collect())))
    }

    fn nvmlGpuInstanceGetComputeInstanceById(handle: nvmlGpuInstance_t, id: c_uint, out: *mut nvmlComputeInstance_t) {
        let there = |state: &mut State<'_>, gpu, instance| existing(state, gpu, instance).filter(|_| id == 0).ok_or(Code::NOT_FOUND);
        put(out, of_gpu_instance(CALL, handle, there))
    }

    fn nvmlComputeInstanceGetInfo_v2(handle: nvmlComputeInstance_t, out: *mut nvmlComputeInstanceInfo_t) {
        put(out, of_compute_instance(CALL, handle, |state, gpu, instance| {
            let profile = state.instance_profile(gpu, instance);
            Ok(nvmlComputeInstanceInfo_t {
                device: device_handle(Place::gpu(gpu)),
                gpuInstance: gpu_instance(gpu, instance),
                id: 0,
                profileId: number(profile)?,
                placement: nvmlComputeInstancePlacement_t { start: 0, size: profile.slices },
            })
        }))
    }

    fn nvmlComputeInstanceDestroy(handle: nvmlComputeInstance_t) {
        finish(of_compute_instance(CALL, handle, |state, gpu, instance| permitted().and_then(|()| Ok(state.destroy_compute_instance(gpu, instance)?))))
    }
}

aliases! {
    nvmlComputeInstanceGetInfo(handle: nvmlComputeInstance_t, out: *mut nvmlComputeInstanceInfo_t) = nvmlComputeInstanceGetInfo_v2;
}
