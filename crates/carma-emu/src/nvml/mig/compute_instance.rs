//! Compute instances: each GPU instance can have one that has all of it. Smaller ones are not emulated, and the calls say so.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlComputeInstance_t, nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlGpuInstance_t, nvmlReturn_t,
};

use super::gpu_instance::name;
use super::handle::{Handle, calls, compute_instance, gpu_instance};
use super::{instance, put_list, put_v2, second_version};
use crate::nvml::answer::{Answer, Code, finish, handle as device_handle, put};
use crate::profile::MigProfile;
use crate::state::{Place, State};

/// The kind of GPU instance, if this is the number of the compute instance that has all of it. NVML numbers them by their slices, to ask for them
/// and to show them.
fn whole(state: &State<'_>, place: Place, id: c_uint) -> Answer<&'static MigProfile> {
    let profile = state.instance_profile(place.gpu, instance(place)?);
    if number(profile) == Some(id) { Ok(profile) } else { Err(Code::NOT_SUPPORTED) }
}

fn number(profile: &MigProfile) -> Option<c_uint> {
    [1, 2, 3, 4, 7, 8, 6].iter().position(|slices| *slices == profile.slices).map(|place| place as c_uint)
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

fn describe_v2(profile: &MigProfile, id: c_uint) -> nvmlComputeInstanceProfileInfo_v2_t {
    let info = describe(profile, id);
    nvmlComputeInstanceProfileInfo_v2_t {
        version: second_version::<nvmlComputeInstanceProfileInfo_v2_t>(),
        id: info.id,
        sliceCount: info.sliceCount,
        instanceCount: info.instanceCount,
        multiprocessorCount: info.multiprocessorCount,
        sharedCopyEngineCount: info.sharedCopyEngineCount,
        sharedDecoderCount: info.sharedDecoderCount,
        sharedEncoderCount: info.sharedEncoderCount,
        sharedJpegCount: info.sharedJpegCount,
        sharedOfaCount: info.sharedOfaCount,
        name: name(&format!("MIG {}", profile.name)),
    }
}

/// The compute instance of a GPU instance, if there is one.
fn existing(state: &State<'_>, place: Place) -> Answer<Option<nvmlComputeInstance_t>> {
    let instance = instance(place)?;
    let there = state.gpus[place.gpu].instances[instance].computes != 0;
    Ok(there.then(|| compute_instance(place.gpu, instance)))
}

fn create(state: &mut State<'_>, place: Place, id: c_uint) -> Answer<nvmlComputeInstance_t> {
    whole(state, place, id)?;
    state.create_compute_instance(place.gpu, instance(place)?)?;
    existing(state, place)?.ok_or(Code::UNKNOWN)
}

fn info(state: &mut State<'_>, place: Place) -> Answer<nvmlComputeInstanceInfo_t> {
    let instance = instance(place)?;
    let profile = state.instance_profile(place.gpu, instance);
    Ok(nvmlComputeInstanceInfo_t {
        device: device_handle(Place::gpu(place.gpu)),
        gpuInstance: gpu_instance(place.gpu, instance),
        id: 0,
        profileId: number(profile).ok_or(Code::NOT_SUPPORTED)?,
        placement: nvmlComputeInstancePlacement_t { start: 0, size: profile.slices },
    })
}

/// All the engines of a GPU instance are shared between its compute instances: NVML knows no other way.
fn shared(engines: c_uint) -> Answer<()> {
    if engines == 0 { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

calls! {
    put: nvmlGpuInstanceGetComputeInstanceProfileInfo(
        gpu_instance: nvmlGpuInstance_t, slot: c_uint, engines: c_uint; info: *mut nvmlComputeInstanceProfileInfo_t
    ) = |state, place| shared(engines).and_then(|()| Ok(describe(whole(state, place, slot)?, slot)));
    put_v2: nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        gpu_instance: nvmlGpuInstance_t, slot: c_uint, engines: c_uint; info: *mut nvmlComputeInstanceProfileInfo_v2_t
    ) = |state, place| shared(engines).and_then(|()| Ok(describe_v2(whole(state, place, slot)?, slot)));
    put: nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gpu_instance: nvmlGpuInstance_t, id: c_uint; count: *mut c_uint) =
        |state, place| whole(state, place, id).and_then(|_| Ok(u32::from(existing(state, place)?.is_none())));
    put_list: nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        gpu_instance: nvmlGpuInstance_t, id: c_uint; items: *mut nvmlComputeInstancePlacement_t, count: *mut c_uint
    ) = |state, place| Ok(vec![nvmlComputeInstancePlacement_t { start: 0, size: whole(state, place, id)?.slices }]);
    put: nvmlGpuInstanceCreateComputeInstance(gpu_instance: nvmlGpuInstance_t, id: c_uint; out: *mut nvmlComputeInstance_t) =
        |state, place| create(state, place, id);
    put_list: nvmlGpuInstanceGetComputeInstances(
        gpu_instance: nvmlGpuInstance_t, id: c_uint; items: *mut nvmlComputeInstance_t, count: *mut c_uint
    ) = |state, place| whole(state, place, id).and_then(|_| Ok(existing(state, place)?.into_iter().collect()));
    put: nvmlGpuInstanceGetComputeInstanceById(gpu_instance: nvmlGpuInstance_t, id: c_uint; out: *mut nvmlComputeInstance_t) =
        |state, place| existing(state, place)?.filter(|_| id == 0).ok_or(Code::NOT_FOUND);
    put: nvmlComputeInstanceGetInfo(compute_instance: nvmlComputeInstance_t; out: *mut nvmlComputeInstanceInfo_t) = info;
    put: nvmlComputeInstanceGetInfo_v2(compute_instance: nvmlComputeInstance_t; out: *mut nvmlComputeInstanceInfo_t) = info;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    gpu_instance: nvmlGpuInstance_t,
    id: c_uint,
    placement: *const nvmlComputeInstancePlacement_t,
    out: *mut nvmlComputeInstance_t,
) -> nvmlReturn_t {
    // SAFETY: the caller gives null or a placement, as NVML demands.
    let placement = unsafe { placement.as_ref() };
    let answer = gpu_instance.ask("nvmlGpuInstanceCreateComputeInstanceWithPlacement", |state, place| {
        let slices = whole(state, place, id)?.slices;
        let fits = placement.is_some_and(|placement| (placement.start, placement.size) == (0, slices));
        if fits { create(state, place, id) } else { Err(Code::INVALID_ARGUMENT) }
    });
    // SAFETY: as NVML demands of its callers.
    unsafe { put(out, answer) }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlComputeInstanceDestroy(compute_instance: nvmlComputeInstance_t) -> nvmlReturn_t {
    let destroy = |state: &mut State<'_>, place: Place| Ok(state.destroy_compute_instance(place.gpu, instance(place)?)?);
    finish(compute_instance.ask("nvmlComputeInstanceDestroy", destroy))
}
