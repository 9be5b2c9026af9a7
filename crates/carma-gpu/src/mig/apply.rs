//! Partitions a GPU.

use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED;
use thiserror::Error;

use super::layout::Layout;
use super::plan::{PlanError, plan};
use super::step::{Plan, Step};
use super::{MigState, Mode, list, profiles, raw};
use crate::driver::Driver;
use crate::error::DriverError;
use crate::identity::DeviceUuid;

/// Switching MIG resets the GPU, and creating instances takes time too.
const DEADLINE: Duration = Duration::from_secs(60);

/// Why a GPU was not partitioned. Unless the error states otherwise, the GPU is unchanged.
#[derive(Debug, Error)]
pub enum MigError {
    /// No plan leads to the layout.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// We may not.
    #[error("changing MIG instances needs more rights ({call} was refused): run this as root, or with CAP_SYS_ADMIN in a container")]
    NoPermission {
        /// The refused call.
        call: &'static str,
    },
    /// The driver reports the kinds of instances only when MIG is on, and it is off.
    #[error("this driver lists the possible MIG instances only while MIG is on: switch it on first with `nvidia-smi -mig 1`")]
    ProfilesHidden,
    /// The driver.
    #[error(transparent)]
    Driver(DriverError),
    /// An instance could not be removed, because something other than a process holds it open.
    #[error("a MIG instance could not be destroyed: a program uses it, perhaps DCGM")]
    InUse,
    /// The mode was to change, and did not, because something has the GPU open that is no process on it.
    #[error("MIG could not be switched: a program uses the GPU, perhaps DCGM or a display")]
    Open,
    /// The mode changes with a reset that we cannot make; it stays set for then.
    #[error("MIG is switched with the next reset of the GPU: restart the machine, then apply the layout again")]
    ResetNeeded,
    /// The driver reported success, but the layout differs.
    #[error("the GPU should be partitioned into {wanted}, but is partitioned into {found}")]
    Differs {
        /// The requested layout.
        wanted: Layout,
        /// The present layout.
        found: Layout,
    },
    /// It went wrong, and so did undoing it.
    #[error("{cause}; the completed steps could not be undone: {undoing}")]
    HalfDone {
        /// The first error.
        cause: Box<Self>,
        /// And then.
        undoing: Box<Self>,
    },
}

impl From<DriverError> for MigError {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::NoPermission { call, .. } => Self::NoPermission { call },
            DriverError::Call { error: NvmlError::InUse, .. } => Self::InUse,
            error => Self::Driver(error),
        }
    }
}

/// The steps to partition a GPU, or why it is not possible.
pub fn prepare(driver: &Driver, gpu: &DeviceUuid, layout: &Layout) -> Result<Plan, MigError> {
    let (state, profiles) = (list(driver, gpu)?, profiles(driver, gpu)?);
    if profiles.is_empty() && state.mode == Mode::Off && *layout != Layout::Off {
        return Err(MigError::ProfilesHidden);
    }
    Ok(plan(&state, layout, &profiles)?)
}

/// Partitions a GPU, and returns its layout. Matching instances stay, with their processes; if a step fails, those before it are
/// undone, though recreated instances have other UUIDs.
pub fn apply(driver: &Driver, gpu: &DeviceUuid, layout: &Layout) -> Result<MigState, MigError> {
    let mut undo = Vec::new();
    attempt(driver, gpu, layout, &mut undo).map_err(|cause| {
        let undone = undo.into_iter().rev().try_for_each(|step| carry_out(driver, gpu, step).map(drop));
        match undone {
            Ok(()) => cause,
            Err(undoing) => MigError::HalfDone { cause: Box::new(cause), undoing: Box::new(undoing) },
        }
    })
}

fn attempt(driver: &Driver, gpu: &DeviceUuid, layout: &Layout, undo: &mut Vec<Step>) -> Result<MigState, MigError> {
    let plan = match prepare(driver, gpu, layout) {
        Err(MigError::ProfilesHidden) => {
            // Only with MIG on, the driver shows whether the layout is possible; running processes keep it off.
            let on = plan(&list(driver, gpu)?, &Layout::Instances(Vec::new()), &[])?;
            on.steps.into_iter().try_for_each(|step| carry_out(driver, gpu, step).map(|back| undo.push(back)))?;
            prepare(driver, gpu, layout)?
        }
        plan => plan?,
    };
    for step in plan.steps {
        undo.push(carry_out(driver, gpu, step)?);
    }
    let state = list(driver, gpu)?;
    let found = match state.mode {
        Mode::On => {
            Layout::new(state.instances.iter().filter(|instance| instance.whole().is_some()).map(|instance| instance.profile).collect())
        }
        Mode::Off | Mode::Unsupported => Layout::Off,
    };
    if found == *layout { Ok(state) } else { Err(MigError::Differs { wanted: layout.clone(), found }) }
}

/// Does one step, and returns the one that undoes it.
fn carry_out(driver: &Driver, gpu: &DeviceUuid, step: Step) -> Result<Step, MigError> {
    Ok(match step {
        Step::Switch(mode) => {
            switch(driver, gpu, mode)?;
            Step::Switch(opposite(mode))
        }
        Step::Destroy(number, part) => {
            driver.device_within(DEADLINE, gpu, "nvmlGpuInstanceDestroy", move |device| raw::destroy(device, number))?;
            Step::Create(part)
        }
        Step::Create(part) => {
            let create = move |device: &mut _| raw::create(device, part.profile_id, part.profile.slices, part.placement);
            Step::Destroy(driver.device_within(DEADLINE, gpu, "nvmlDeviceCreateGpuInstanceWithPlacement", create)?, part)
        }
    })
}

fn switch(driver: &Driver, gpu: &DeviceUuid, mode: Mode) -> Result<(), MigError> {
    // The call succeeds though the mode may not have changed: the result is a separate value.
    let set = |mode| driver.device_within(DEADLINE, gpu, "nvmlDeviceSetMigMode", move |device| device.set_mig_mode(mode == Mode::On));
    match set(mode)? {
        0 => Ok(()),
        code if code == nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => Err(MigError::ResetNeeded),
        _ => {
            // Else it would change with the next reset, whenever that is.
            set(opposite(mode))?;
            Err(MigError::Open)
        }
    }
}

fn opposite(mode: Mode) -> Mode {
    if mode == Mode::On { Mode::Off } else { Mode::On }
}
