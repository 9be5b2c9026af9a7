//! The managed GPUs and MIG instances, by the manager's ids and by the driver's UUIDs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use carma_core::{CollocationMode, DeviceId, DeviceSpec, MiB, PowerRange, ServerId};
use carma_gpu::profiling::Target;
use carma_gpu::{DeviceUuid, Driver, DriverError, Gpu, LeftOut, Unfit, mig};
use serde::{Deserialize, Serialize};

use super::excluded::ExcludedGpus;
use crate::configuration::GpuConfig;
use crate::saved;

/// The only server.
pub(crate) const LOCAL_SERVER: ServerId = ServerId(0);

/// A GPU or an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) id: DeviceId,
    pub(crate) uuid: DeviceUuid,
    /// The number of its GPU's device file.
    pub(crate) file: Option<u32>,
    pub(crate) name: String,
    pub(crate) memory: MiB,
    pub(crate) mode: CollocationMode,
    pub(crate) power: Option<PowerRange>,
    /// Its target for profiling counters.
    pub(crate) target: Target,
    /// Its driver can limit the memory of control groups.
    #[serde(default)]
    pub(crate) limits_memory: bool,
}

impl Device {
    /// What the scheduler knows of it, where nothing limits the memory of jobs.
    pub(crate) fn spec(&self) -> DeviceSpec {
        DeviceSpec { mode: self.mode, power: self.power, ..DeviceSpec::new(self.id, self.memory) }
    }
}

/// All devices, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Devices(Vec<Device>);

impl Devices {
    /// None.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Asks the driver. A GPU keeps its first number when others come or go: running attempts refer to it.
    pub(crate) fn find(driver: &Driver, settings: &GpuConfig, numbers: &mut Numbers) -> Result<(Self, ExcludedGpus), DriverError> {
        let mut devices = Vec::new();
        let mut inventory = driver.inventory()?;
        let listed = |list: &[String], gpu: &Gpu| list.iter().any(|name| names_gpu(name, gpu.index, &gpu.uuid));
        let (ignored, used): (Vec<Gpu>, Vec<Gpu>) =
            std::mem::take(&mut inventory.gpus).into_iter().partition(|gpu| listed(&settings.ignore, gpu));
        inventory.gpus = used;
        inventory.left_out.extend(ignored.into_iter().map(|gpu| LeftOut {
            index: gpu.index,
            uuid: Some(gpu.uuid),
            name: Some(gpu.name),
            reason: Unfit::Ignored,
        }));
        let excluded = ExcludedGpus::of(&inventory);
        for gpu in inventory.gpus {
            let id = DeviceId::gpu(LOCAL_SERVER, numbers.of(&gpu.uuid, gpu.index));
            let by_mps = listed(&settings.mps, &gpu);
            let mode = if by_mps { CollocationMode::Mps { exclusive_process: false } } else { CollocationMode::Streams };
            devices.extend(with_instances(driver, gpu, id, mode)?);
        }
        Ok((Self::sorted(devices), excluded))
    }

    /// The same, and the devices of earlier whose GPUs do not answer now: those are lost, or hang, and may return.
    pub(crate) fn with_missing(self, earlier: &Self, excluded: &ExcludedGpus) -> Self {
        let missing = earlier.0.iter().filter(|device| !excluded.is_present(&device.target.unit.gpu)).cloned();
        Self::sorted(self.0.into_iter().chain(missing).collect())
    }

    /// Asks the driver for one GPU with this mode; empty if it is in MIG mode without instances.
    pub(crate) fn of_gpu(driver: &Driver, uuid: &DeviceUuid, id: DeviceId, mode: CollocationMode) -> Result<Self, DriverError> {
        let gpu = driver.inventory()?.gpus.into_iter().find(|gpu| gpu.uuid == *uuid);
        gpu.map_or_else(|| Ok(Vec::new()), |gpu| with_instances(driver, gpu, id, mode)).map(Self::sorted)
    }

    fn sorted(mut devices: Vec<Device>) -> Self {
        devices.sort_by_key(|device| device.id);
        // Several compute instances in one GPU instance share its memory: the first represents all.
        devices.dedup_by_key(|device| device.id);
        Self(devices)
    }

    /// The same with one GPU replaced.
    pub(crate) fn with_gpu(&self, gpu: DeviceId, found: Self) -> Self {
        let others = self.0.iter().filter(|device| device.id.gpu != gpu.gpu).cloned();
        Self::sorted(others.chain(found.0).collect())
    }

    /// Whether this is one whole GPU.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(&self.0[..], [device] if device.id.instance.is_none())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.0.iter()
    }

    pub(crate) fn get(&self, id: DeviceId) -> Option<&Device> {
        self.0.iter().find(|device| device.id == id)
    }

    /// Sets the mode of a device.
    pub(crate) fn set_mode(&mut self, id: DeviceId, mode: CollocationMode) {
        self.0.iter_mut().filter(|device| device.id == id).for_each(|device| device.mode = mode);
    }

    /// Keeps modes that were switched.
    pub(crate) fn keep_modes(&mut self, before: &Self) {
        for device in &mut self.0 {
            if let Some(before) = before.get(device.id).filter(|before| before.uuid == device.uuid) {
                device.mode = before.mode;
            }
        }
    }

    /// GPUs by their numbers, cut or whole.
    pub(crate) fn gpus(&self) -> Vec<(u16, DeviceUuid)> {
        let whole = self.0.iter().filter(|device| device.id.instance.is_none());
        whole.map(|device| (device.id.gpu.ordinal, device.uuid.clone())).collect()
    }

    pub(crate) fn by_uuid(&self, uuid: &DeviceUuid) -> Option<&Device> {
        self.0.iter().find(|device| device.uuid == *uuid)
    }

    pub(crate) fn uuids(&self) -> Vec<DeviceUuid> {
        self.0.iter().map(|device| device.uuid.clone()).collect()
    }
}

impl FromIterator<Device> for Devices {
    fn from_iter<T: IntoIterator<Item = Device>>(devices: T) -> Self {
        Self::sorted(devices.into_iter().collect())
    }
}

/// A GPU and its instances.
fn with_instances(driver: &Driver, gpu: Gpu, id: DeviceId, mode: CollocationMode) -> Result<Vec<Device>, DriverError> {
    // The default limit: one that the manager set is no property of the GPU. An error of one GPU does not affect the others.
    let power = driver.default_power_limit(&gpu.uuid).ok().flatten().map(PowerRange::up_to);
    let cut = gpu.mig == Some(true);
    let instances = if cut { mig::list(driver, &gpu.uuid)?.instances } else { Vec::new() };
    let mut devices = Vec::new();
    for instance in &instances {
        let usable = instance.compute.iter().filter(|compute| gpu.may_use(&compute.uuid));
        devices.extend(usable.map(|compute| Device {
            id: id.instance(u16::try_from(instance.gpu_instance).unwrap_or(u16::MAX)),
            uuid: compute.uuid.clone(),
            file: gpu.file,
            name: format!("{} {}", gpu.name, instance.profile),
            memory: instance.memory,
            mode: CollocationMode::Mig,
            power: power.map(|power| power.instance(instance.memory.0 as f64 / gpu.memory.0 as f64)),
            target: Target::instance(compute.uuid.clone(), gpu.uuid.clone(), instance.gpu_instance),
            limits_memory: false,
        }));
    }
    // With MIG on, nothing runs outside of instances.
    if !cut || !devices.is_empty() {
        let (target, limits_memory) = (Target::gpu(gpu.uuid.clone()), driver.limits_memory(&gpu.uuid));
        devices.push(Device { id, target, uuid: gpu.uuid, file: gpu.file, name: gpu.name, memory: gpu.memory, mode, power, limits_memory });
    }
    Ok(devices)
}

/// Whether a word of `manager.gpus.ignore` or `manager.gpus.mps` names this GPU.
pub fn names_gpu(word: &str, index: u32, uuid: &DeviceUuid) -> bool {
    word == "all" || word.parse() == Ok(index) || (word.len() > 4 && uuid.as_str().starts_with(word))
}

/// Which GPU has which number, kept in a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Numbers(BTreeMap<u16, DeviceUuid>);

impl Numbers {
    pub(crate) fn read(path: &Path) -> Self {
        // Without the file GPUs have the driver's numbers.
        Self(saved::read(path))
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        saved::write(path, &self.0)
    }

    fn of(&mut self, uuid: &DeviceUuid, index: u32) -> u16 {
        if let Some((number, _)) = self.0.iter().find(|(_, known)| *known == uuid) {
            return *number;
        }
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        let number = std::iter::once(index).chain(0..=u16::MAX).find(|number| !self.0.contains_key(number)).unwrap_or(index);
        self.0.insert(number, uuid.clone());
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_keeps_its_number_when_others_change() {
        let uuid = |name: &str| name.parse::<DeviceUuid>().unwrap();
        let mut numbers = Numbers::default();
        assert_eq!([numbers.of(&uuid("GPU-a"), 0), numbers.of(&uuid("GPU-b"), 1)], [0, 1]);
        // The first is gone, the second has the driver's number 0 now, and a third came.
        assert_eq!([numbers.of(&uuid("GPU-b"), 0), numbers.of(&uuid("GPU-c"), 1), numbers.of(&uuid("GPU-c"), 0)], [1, 2, 2]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gpus.json");
        numbers.write(&file).unwrap();
        assert_eq!(Numbers::read(&file), numbers);
        assert_eq!(Numbers::read(&folder.path().join("none")), Numbers::default());
    }
}
