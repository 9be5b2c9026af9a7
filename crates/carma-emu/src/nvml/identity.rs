//! The list of devices, and their identities.

use std::ffi::{CStr, c_char, c_uint};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlUUID_t};

use super::answer::{Answer, Code, handle, of_device, of_system, put, put_pair, versioned};
use super::declare::{aliases, calls, device_texts, device_values};
use crate::profile::Facts;
use crate::state::{Place, State};

/// The first device that matches; instances are found like GPUs.
fn find(call: &str, is_it: impl Fn(&State<'_>, Place) -> bool) -> Answer<nvmlDevice_t> {
    of_system(call, |state| {
        let gpus = (0..state.gpus.len()).map(Place::gpu);
        let place = gpus.chain(state.places()).find(|place| is_it(state, *place)).ok_or(Code::NOT_FOUND)?;
        if state.gpus[place.gpu].lost != 0 { Err(Code::GPU_IS_LOST) } else { Ok(handle(place)) }
    })
}

unsafe fn text(given: *const c_char) -> Answer<String> {
    if given.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's text ends with a zero.
    Ok(unsafe { CStr::from_ptr(given) }.to_string_lossy().into_owned())
}

fn uuid(state: &State<'_>, place: Place) -> String {
    let gpu = &state.gpus[place.gpu];
    place.instance.map_or(gpu.uuid.get(), |instance| gpu.instances[instance].uuid.get()).to_owned()
}

/// Boards with ECC are those of servers and workstations, which have serial numbers. It is made up, but constant for a UUID.
fn serial(state: &State<'_>, gpu: usize) -> Answer<String> {
    let digits = state.gpus[gpu].uuid.get().bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    if state.profile(gpu).facts.ecc { Ok(format!("1{:012}", digits % 1_000_000_000_000)) } else { Err(Code::NOT_SUPPORTED) }
}

/// NVML's number of the brand in a product's name.
fn brand(facts: &Facts) -> c_uint {
    let brands = [("Tesla", 2), ("GeForce RTX", 15), ("NVIDIA RTX", 13)];
    brands.into_iter().find(|(words, _)| facts.product.contains(words)).map_or(14, |(_, brand)| brand)
}

calls! {
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) { put(count, of_system(CALL, |state| Ok(state.gpus.len() as c_uint))) }

    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) {
        let found = find(CALL, |_, place| place == Place::gpu(index as usize));
        put(device, found.map_err(|code| if code == Code::NOT_FOUND { Code::INVALID_ARGUMENT } else { code }))
    }

    fn nvmlDeviceGetHandleByUUID(given: *const c_char, device: *mut nvmlDevice_t) {
        put(device, text(given).and_then(|given| find(CALL, |state, place| uuid(state, place) == given)))
    }

    fn nvmlDeviceGetHandleByUUIDV(given: *const nvmlUUID_t, device: *mut nvmlDevice_t) {
        // As text; the raw bytes are not supported.
        const ASCII: c_uint = 1;
        let wanted = versioned(given.cast_mut(), 1).and_then(|given| match given.type_ {
            ASCII => text(given.value.str_.as_ptr()),
            _ => Err(Code::NOT_SUPPORTED),
        });
        put(device, wanted.and_then(|given| find(CALL, |state, place| uuid(state, place) == given)))
    }

    fn nvmlDeviceGetHandleBySerial(given: *const c_char, device: *mut nvmlDevice_t) {
        let is_it = |given: &str, state: &State<'_>, place: Place| place.instance.is_none() && serial(state, place.gpu).as_deref() == Ok(given);
        put(device, text(given).and_then(|given| find(CALL, |state, place| is_it(&given, state, place))))
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(given: *const c_char, device: *mut nvmlDevice_t) {
        // Written with a domain of eight digits, of four, or none.
        let is_it = |given: &str, state: &State<'_>, place: Place| {
            let full = state.gpus[place.gpu].bus_id();
            place.instance.is_none() && full.len() - given.len().min(full.len()) <= 9 && full.to_lowercase().ends_with(&given.to_lowercase())
        };
        put(device, text(given).and_then(|given| find(CALL, |state, place| is_it(&given, state, place))))
    }

    fn nvmlGetExcludedDeviceCount(count: *mut c_uint) { put(count, of_system(CALL, |_| Ok(0))) }

    fn nvmlUnitGetCount(count: *mut c_uint) { put(count, of_system(CALL, |_| Ok(0))) }
}

aliases! {
    nvmlDeviceGetCount(count: *mut c_uint) = nvmlDeviceGetCount_v2;
    nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t) = nvmlDeviceGetHandleByIndex_v2;
    nvmlDeviceGetHandleByPciBusId(id: *const c_char, device: *mut nvmlDevice_t) = nvmlDeviceGetHandleByPciBusId_v2;
}

device_texts! {
    nvmlDeviceGetUUID = |state, place| Ok(uuid(state, place));
    nvmlDeviceGetName = |state, place| {
        let product = state.profile(place.gpu).facts.product.clone();
        Ok(match place.instance {
            Some(instance) => format!("{product} MIG {}", state.instance_profile(place.gpu, instance).name),
            None => product,
        })
    };
    nvmlDeviceGetSerial = |state, place| serial(state, place.gpu);
    nvmlDeviceGetBoardPartNumber = |state, place| {
        let facts = &state.profile(place.gpu).facts;
        if facts.ecc { Ok(format!("EMULATED-{:04X}", facts.device_id >> 16)) } else { Err(Code::NOT_SUPPORTED) }
    };
    // There is none.
    nvmlDeviceGetVbiosVersion = |_, _| Ok("00.00.00.00.00");
}

device_values! {
    // The index among its kind: GPUs among GPUs, instances among those of their GPU.
    nvmlDeviceGetIndex(c_uint) = |state, place| Ok(match place.instance {
        None => place.gpu,
        Some(_) => state.places().into_iter().filter(|other| other.gpu == place.gpu).position(|other| other == place).unwrap_or_default(),
    } as c_uint);
    nvmlDeviceGetMinorNumber(c_uint) = |_, place| Ok(place.gpu as c_uint);
    nvmlDeviceGetModuleId(c_uint) = |_, place| Ok(place.gpu as c_uint + 1);
    nvmlDeviceGetBoardId(c_uint) = |state, place| Ok(state.gpus[place.gpu].bus << 8);
    nvmlDeviceGetMultiGpuBoard(c_uint) = |_, _| Ok(0);
    nvmlDeviceGetBrand(c_uint) = |state, place| Ok(brand(&state.profile(place.gpu).facts));
    nvmlDeviceGetArchitecture(c_uint) = |state, place| Ok(state.profile(place.gpu).facts.architecture);
    nvmlDeviceGetNumGpuCores(c_uint) = |state, place| {
        let profile = state.profile(place.gpu);
        let share = place.instance.map_or(1.0, |instance| profile.share(state.instance_profile(place.gpu, instance)).get());
        Ok((f64::from(profile.facts.cores) * share) as c_uint)
    };
}

calls! {
    fn nvmlDeviceGetCudaComputeCapability(device: nvmlDevice_t, major: *mut i32, minor: *mut i32) {
        let answer = of_device(CALL, device, |state, place| Ok(state.profile(place.gpu).facts.capability.map(u32::cast_signed).into()));
        put_pair((major, minor), answer)
    }
}
