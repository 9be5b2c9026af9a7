//! Values by field number.

use std::ffi::c_int;

use nvml_wrapper_sys::bindings::{field_id as id, nvmlDevice_t, nvmlFieldValue_t, nvmlValue_t, nvmlValueType_t};

use super::answer::{Answer, Code, finish, of_gpu};
use super::declare::calls;
use super::health::errors;
use super::power::energy;
use super::processes::timestamp;
use super::topology::{link_version, linked};
use crate::readings::power_limits;
use crate::state::State;

/// Megabytes a second of a link of NVLink, by architecture.
const fn link_speed(architecture: u32) -> u32 {
    match architecture {
        ..=4 => 20_000,
        _ => 25_781,
    }
}

/// A value with NVML's number of its type.
enum Value {
    Unsigned(u32),
    Long(u64),
}

impl Value {
    const fn parts(self) -> (nvmlValueType_t, nvmlValue_t) {
        match self {
            Self::Unsigned(value) => (1, nvmlValue_t { uiVal: value }),
            Self::Long(value) => (3, nvmlValue_t { ullVal: value }),
        }
    }
}

/// `scope` is the link or the sensor that is meant, for fields that have several.
fn value(state: &State<'_>, gpu: usize, field: u32, scope: u32) -> Answer<Value> {
    let profile = state.profile(gpu);
    let limits = power_limits(profile.kind);
    let architecture = profile.facts.architecture;
    Ok(match field {
        id::NVML_FI_DEV_ECC_CURRENT | id::NVML_FI_DEV_ECC_PENDING => Value::Unsigned(profile.facts.ecc.into()),
        id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL
        | id::NVML_FI_DEV_ECC_SBE_AGG_TOTAL
        | id::NVML_FI_DEV_ECC_SBE_VOL_DEV
        | id::NVML_FI_DEV_ECC_SBE_AGG_DEV => Value::Long(errors(state, gpu, 0)?),
        id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL
        | id::NVML_FI_DEV_ECC_DBE_AGG_TOTAL
        | id::NVML_FI_DEV_ECC_DBE_VOL_DEV
        | id::NVML_FI_DEV_ECC_DBE_AGG_DEV => Value::Long(errors(state, gpu, 1)?),
        id::NVML_FI_DEV_MEMORY_TEMP if profile.facts.ecc => Value::Unsigned(state.readings(gpu).memory_temperature),
        id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION | id::NVML_FI_DEV_ENERGY => Value::Long(energy(state, gpu)?),
        id::NVML_FI_DEV_POWER_AVERAGE | id::NVML_FI_DEV_POWER_INSTANT => Value::Unsigned(state.readings(gpu).milliwatts),
        id::NVML_FI_DEV_POWER_MIN_LIMIT => Value::Unsigned(*limits.start()),
        id::NVML_FI_DEV_POWER_MAX_LIMIT | id::NVML_FI_DEV_POWER_DEFAULT_LIMIT => Value::Unsigned(*limits.end()),
        id::NVML_FI_DEV_POWER_CURRENT_LIMIT | id::NVML_FI_DEV_POWER_REQUESTED_LIMIT => Value::Unsigned(state.gpus[gpu].power_limit),
        id::NVML_FI_DEV_NVLINK_LINK_COUNT => Value::Unsigned(profile.facts.nvlinks),
        id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON | id::NVML_FI_DEV_NVLINK_GET_SPEED if linked(state, gpu, scope)?.is_some() => {
            Value::Unsigned(link_speed(architecture))
        }
        id::NVML_FI_DEV_NVLINK_GET_STATE => Value::Unsigned(linked(state, gpu, scope)?.is_some().into()),
        id::NVML_FI_DEV_NVLINK_GET_VERSION => Value::Unsigned(linked(state, gpu, scope).map(|_| link_version(architecture))?),
        id::NVML_FI_DEV_PCIE_REPLAY_COUNTER => Value::Unsigned(0),
        _ => return Err(Code::NOT_SUPPORTED),
    })
}

calls! {
    fn nvmlDeviceGetFieldValues(device: nvmlDevice_t, count: c_int, values: *mut nvmlFieldValue_t) {
        finish(of_gpu(CALL, device, |state, gpu| {
            let count = usize::try_from(count).map_err(|_| Code::INVALID_ARGUMENT)?;
            if values.is_null() || count == 0 {
                return Err(Code::INVALID_ARGUMENT);
            }
            // SAFETY: the caller gives that many, each with the field it is to hold.
            for out in unsafe { std::slice::from_raw_parts_mut(values, count) } {
                let answer = value(state, gpu, out.fieldId, out.scopeId);
                (out.timestamp, out.latencyUsec) = (timestamp().cast_signed(), 0);
                out.nvmlReturn = finish(answer.as_ref().map(|_| ()).map_err(|code| *code));
                if let Ok(value) = answer {
                    (out.valueType, out.value) = value.parts();
                }
            }
            Ok(())
        }))
    }

    fn nvmlDeviceClearFieldValues(device: nvmlDevice_t, _count: c_int, _values: *mut nvmlFieldValue_t) {
        finish(of_gpu(CALL, device, |_, _| -> Answer<()> { Err(Code::NOT_SUPPORTED) }))
    }
}
