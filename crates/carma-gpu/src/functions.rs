//! Which functions of the driver's library there are.

use std::ffi::OsStr;

use libloading::Library;

use crate::driver::Driver;

/// The functions that CARMA calls where they exist; without one, the feature behind it is missing.
const OPTIONAL: [(&str, &str); 14] = [
    ("nvmlDeviceGetMemoryInfo", "memory"),
    ("nvmlDeviceGetUtilizationRates", "utilisation"),
    ("nvmlDeviceGetTotalEnergyConsumption", "energy"),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", "throttle reasons"),
    ("nvmlDeviceGetComputeRunningProcesses_v3", "processes"),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "clients of MPS"),
    ("nvmlDeviceGetProcessUtilization", "activity of processes"),
    ("nvmlEventSetWait_v2", "events"),
    ("nvmlDeviceGetMigMode", "MIG"),
    ("nvmlDeviceGetGpuInstancePossiblePlacements_v2", "MIG placements"),
    ("nvmlDeviceSetPowerManagementLimit", "power limits"),
    ("nvmlDeviceGetTopologyCommonAncestor", "topology"),
    ("nvmlGpmMetricsGet", "counters by GPM (driver 520 and later)"),
    ("nvmlDeviceSetMemoryLimits_v1", "memory limits (driver 615 and later)"),
];

/// A function of the driver's library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryFunction {
    /// Its name.
    pub name: &'static str,
    /// What CARMA needs it for.
    pub purpose: &'static str,
    /// Whether the library has it.
    pub exists: bool,
}

impl Driver {
    /// The functions that not every driver has. The library is only searched; nothing is called.
    pub fn functions(&self) -> Vec<LibraryFunction> {
        let found = exports(self.library(), OPTIONAL.map(|(name, _)| name));
        OPTIONAL.into_iter().zip(found).map(|((name, purpose), exists)| LibraryFunction { name, purpose, exists }).collect()
    }
}

#[expect(unsafe_code, reason = "a loaded library is searched by name")]
fn exports<const N: usize>(library: &OsStr, names: [&str; N]) -> [bool; N] {
    // SAFETY: the library was loaded before, so nothing of it runs now; its functions are looked up, and not called.
    unsafe {
        let Ok(library) = Library::new(library) else { return [false; N] };
        names.map(|name| library.get::<unsafe extern "C" fn()>(name.as_bytes()).is_ok())
    }
}
