//! Which driver to talk to: the machine's own, or emulated GPUs.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use carma_emu::{Machine, VARIABLE};
use carma_gpu::{Allocation, DEADLINE, DeviceUuid, Driver, DriverError, Exclusion, Gpu, Inventory, LeftOut, Limits, open_device_file};

/// The machine with the GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum World {
    /// This machine.
    Real,
    /// An emulated machine in this folder.
    Emulated(PathBuf),
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("GPUs of this machine"),
            Self::Emulated(folder) => write!(f, "emulated GPUs in {}", folder.display()),
        }
    }
}

/// The driver to use: emulated GPUs if `CARMA_EMU` names them, else real ones, else emulated ones if some were set up.
pub(crate) fn find() -> Result<(Driver, World)> {
    if std::env::var_os(VARIABLE).is_some_and(|folder| !folder.is_empty()) {
        return emulated();
    }
    match real() {
        Ok(driver) => Ok((driver, World::Real)),
        Err(_) if Machine::default_folder().join("state").exists() => emulated(),
        Err(missing) => bail!(
            "no NVIDIA GPU was found here ({missing}).\nEmulated GPUs let you try everything: `carma emu up` sets up four A100s, \
             `carma doctor` says what a real server needs."
        ),
    }
}

/// The GPU that is meant: by its number in the order of `carma gpus`, or by the beginning of its UUID.
pub(crate) fn choose<'a>(inventory: &'a Inventory, name: &str) -> Result<&'a Gpu> {
    let is_meant = |index: u32, uuid: &DeviceUuid| name.parse() == Ok(index) || (name.len() > 4 && uuid.as_str().starts_with(name));
    let left_out = |gpu: &&LeftOut| name.parse() == Ok(gpu.index) || gpu.uuid.as_ref().is_some_and(|uuid| is_meant(gpu.index, uuid));
    inventory.gpus.iter().find(|gpu| is_meant(gpu.index, &gpu.uuid)).with_context(|| match inventory.left_out.iter().find(left_out) {
        Some(gpu) => format!("GPU {} is not used: {}", gpu.index, gpu.reason),
        None => format!("GPU {name} does not exist: `carma gpus` lists all"),
    })
}

/// The same for actions on a whole GPU: refuses one whose other MIG instances may be in use.
pub(crate) fn choose_whole<'a>(inventory: &'a Inventory, name: &str) -> Result<&'a Gpu> {
    let gpu = choose(inventory, name)?;
    ensure!(
        gpu.usable_instances.is_none(),
        "GPU {} is not yours as a whole: its other MIG instances are {}",
        gpu.index,
        Exclusion::NotVisible
    );
    Ok(gpu)
}

/// The driver of this machine's own GPUs, if it has any.
pub(crate) fn real() -> Result<Driver, String> {
    let driver = Driver::open(None, DEADLINE).map_err(|error| missing(&error))?;
    match driver.count() {
        Ok(0) => Err("the driver is there and knows of no GPU".to_owned()),
        Ok(_) => Ok(driver.limited(Limits { allocation: Allocation::of_process(), file_access: open_device_file })),
        Err(error) => Err(error.to_string()),
    }
}

fn missing(error: &DriverError) -> String {
    match error {
        DriverError::NoLibrary(_) => "there is no NVIDIA driver".to_owned(),
        error => error.to_string(),
    }
}

fn emulated() -> Result<(Driver, World)> {
    let machine = Machine::open(&Machine::default_folder())?;
    let driver = Driver::open(Some(&machine.library()), DEADLINE).context("the emulated driver")?;
    // Emulated GPUs have no device files; existing ones belong to real GPUs.
    let driver = driver.limited(Limits { allocation: Allocation::of_process(), ..Limits::default() });
    Ok((driver, World::Emulated(machine.folder().to_owned())))
}
