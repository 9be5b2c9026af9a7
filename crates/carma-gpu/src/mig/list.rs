//! The present and the possible partition of a GPU.

use carma_core::MiB;
use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::NVML_GPU_INSTANCE_PROFILE_COUNT;

use super::profile::{Profile, ProfileName, Variant};
use super::{ComputeInstance, Instance, MigState, Mode, Process, raw};
use crate::allocation::NamedInstance;
use crate::driver::{self, Driver};
use crate::error::{DriverError, offered};
use crate::identity::DeviceUuid;
use crate::processes::{GpuProcess, processes};

/// How a GPU is partitioned. Without root, GPU instances without compute instances and the placement of instances are not known.
pub fn list(driver: &Driver, gpu: &DeviceUuid) -> Result<MigState, DriverError> {
    let mut state = driver.device(gpu, "nvmlDeviceGetMigMode", |device| read(device))?;
    for process in &mut state.processes {
        let name = std::fs::read(format!("/proc/{}/comm", process.pid));
        process.name = name.ok().map(|name| String::from_utf8_lossy(&name).trim_end().to_owned());
    }
    Ok(state)
}

/// The instance profiles of a GPU; none if it cannot be partitioned, or reports them only in MIG mode.
pub fn profiles(driver: &Driver, gpu: &DeviceUuid) -> Result<Vec<Profile>, DriverError> {
    driver.device(gpu, "nvmlDeviceGetGpuInstanceProfileInfo", |device| kinds(device))
}

fn kinds(device: &Device<'_>) -> Result<Vec<Profile>, NvmlError> {
    let memory = MiB(device.memory_info()?.total >> 20);
    let mut kinds = Vec::new();
    for slot in 0..NVML_GPU_INSTANCE_PROFILE_COUNT {
        let info = match device.profile_info(slot) {
            Err(NvmlError::NotSupported | NvmlError::InvalidArg) => continue,
            info => info?,
        };
        kinds.push(Profile {
            name: ProfileName::new(info.slice_count, MiB(info.memory_size_mb), memory, Variant::of_slot(slot)),
            id: info.id,
            memory: MiB(info.memory_size_mb),
            most: info.instance_count,
            placements: raw::placements(device, info.id)?,
        });
    }
    Ok(kinds)
}

fn read(device: &Device<'_>) -> Result<MigState, NvmlError> {
    let mode = |number| if number == 0 { Mode::Off } else { Mode::On };
    let (mode, pending) = match device.mig_mode() {
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => (Mode::Unsupported, Mode::Unsupported),
        modes => modes.map(|modes| (mode(modes.current), mode(modes.pending)))?,
    };
    let instances = if mode == Mode::On { instances(device)? } else { Vec::new() };
    Ok(MigState { mode, pending, instances, processes: running(device)? })
}

fn instances(device: &Device<'_>) -> Result<Vec<Instance>, NvmlError> {
    let mut instances = Vec::new();
    // Without root, at least the devices are listed.
    for kind in offered(kinds(device))?.unwrap_or_default() {
        match raw::gpu_instances(device, kind.id, kind.most) {
            Err(NvmlError::NoPermission) => {}
            found => instances.extend(found?.into_iter().map(|found| Instance {
                gpu_instance: found.id,
                profile: kind.name,
                placement: Some(found.placement),
                memory: kind.memory,
                slices: kind.name.slices,
                compute: Vec::new(),
            })),
        }
    }
    for index in 0..device.mig_device_count()? {
        let part = match device.mig_device_by_index(index) {
            Err(NvmlError::NotFound) => continue,
            part => part?,
        };
        let ((gpu_instance, id), attributes) = (raw::numbers(&part)?, part.attributes()?);
        let uuid = part.uuid()?.parse().map_err(|_| NvmlError::Unknown)?;
        let compute = ComputeInstance { id, uuid, slices: attributes.compute_instance_slice_count };
        match instances.iter_mut().find(|instance| instance.gpu_instance == gpu_instance) {
            Some(instance) => instance.compute.push(compute),
            None => instances.push(Instance {
                gpu_instance,
                profile: named(&part.name()?)?,
                placement: None,
                memory: MiB(attributes.memory_size_mb),
                slices: attributes.gpu_instance_slice_count,
                compute: vec![compute],
            }),
        }
    }
    instances.sort_by_key(|instance| instance.gpu_instance);
    Ok(instances)
}

/// The instances of a GPU with all their names, as far as it reports them.
pub(crate) fn named_instances(device: &Device<'_>) -> Vec<NamedInstance> {
    let named = |part: &Device<'_>| {
        let (gpu_instance, compute_instance) = raw::numbers(part).ok()?;
        Some(NamedInstance { uuid: part.uuid().ok()?.parse().ok()?, gpu_instance, compute_instance })
    };
    driver::instances(device).iter().filter_map(named).collect()
}

/// The profile in a device's name: `... MIG 3g.20gb`, or `... MIG 1c.3g.20gb` if it has a part of it.
fn named(device: &str) -> Result<ProfileName, NvmlError> {
    let kind = device.rsplit(' ').next().unwrap_or_default();
    let kind = kind.split_once("c.").map_or(kind, |(_, kind)| kind);
    kind.parse().map_err(|_| NvmlError::Unknown)
}

fn running(device: &Device<'_>) -> Result<Vec<Process>, NvmlError> {
    let process = |process: GpuProcess| Process { pid: process.pid, name: None, gpu_instance: process.gpu_instance };
    Ok(processes(device)?.into_iter().map(process).collect())
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_kind_of_an_instance_is_in_its_name() {
        let kind = |name: &str| named(name).map(|kind| kind.to_string()).ok();
        assert_eq!(kind("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me").as_deref(), Some("1g.5gb+me"));
        assert_eq!(kind("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb").as_deref(), Some("3g.20gb"));
        assert_eq!(kind("NVIDIA A100-SXM4-40GB"), None);
    }
}
