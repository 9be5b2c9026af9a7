//! A switch of a GPU between streams, MPS and MIG, on a thread that may wait.

use std::sync::Arc;

use carma_core::{CollocationMode, DeviceId, GpuMode, MiB, MigLayout, Part};
use carma_gpu::mig::{self, Layout, ProfileName, Variant};
use carma_gpu::mps::{ClientLimits, MpsControl, MpsError};
use carma_gpu::{DeviceUuid, Driver};

use super::mps::STOP_TIMEOUT;
use crate::host_gpus::Devices;

/// The order to switch a GPU.
#[derive(Debug)]
pub(super) struct SwitchOrder {
    pub(super) device: DeviceId,
    pub(super) to: GpuMode,
    pub(super) gpu: DeviceUuid,
    pub(super) memory: MiB,
    /// Its MPS daemon, and whether that runs now.
    pub(super) control: MpsControl,
    pub(super) by_mps: bool,
    pub(super) driver: Arc<Driver>,
}

/// The result of a switch.
#[derive(Debug)]
pub(crate) struct Switched {
    pub(super) device: DeviceId,
    pub(super) to: GpuMode,
    pub(super) result: Result<(), String>,
    /// The mode and the devices afterwards; empty where the driver does not answer.
    pub(super) mode: CollocationMode,
    pub(super) found: Devices,
}

impl SwitchOrder {
    pub(super) fn carry_out(mut self) -> Switched {
        let result = self.switch();
        let mode = if self.by_mps { CollocationMode::Mps { exclusive_process: false } } else { CollocationMode::Streams };
        // A GPU that does not answer takes no jobs until it does.
        let found = Devices::of_gpu(&self.driver, &self.gpu, self.device, mode).unwrap_or_default();
        Switched { device: self.device, to: self.to, result, mode, found }
    }

    fn switch(&mut self) -> Result<(), String> {
        let had_mps = self.by_mps;
        if had_mps && self.to != GpuMode::Mps {
            match self.control.stop(STOP_TIMEOUT) {
                Ok(()) | Err(MpsError::NotRunning(_)) => self.by_mps = false,
                Err(error) => return Err(error.to_string()),
            }
        }
        if let Err(error) = self.cut() {
            // It is as before, so it needs its daemon again.
            return Err(if had_mps && self.start_mps().is_err() { format!("{error}, and its MPS daemon has ended") } else { error });
        }
        if self.to == GpuMode::Mps { self.start_mps() } else { Ok(()) }
    }

    fn start_mps(&mut self) -> Result<(), String> {
        match self.control.start(ClientLimits::default()) {
            Ok(()) | Err(MpsError::AlreadyRunning(_)) => {
                self.by_mps = true;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Cuts the GPU into instances, or makes it whole.
    fn cut(&self) -> Result<(), String> {
        let state = mig::list(&self.driver, &self.gpu).map_err(|error| error.to_string())?;
        let layout = match self.to {
            GpuMode::Mig(layout) => instances(layout, self.memory),
            GpuMode::Streams | GpuMode::Mps if state.mode == mig::Mode::On => Layout::Off,
            GpuMode::Streams | GpuMode::Mps => return Ok(()),
        };
        mig::apply(&self.driver, &self.gpu, &layout).map(drop).map_err(|error| error.to_string())
    }
}

/// The instances of a layout, as NVIDIA names them on a GPU with this memory.
fn instances(layout: MigLayout, whole: MiB) -> Layout {
    let name = |slices: &u8| ProfileName::new(u32::from(*slices), Part::of(*slices, whole).memory, whole, Variant::Plain);
    Layout::new(layout.slices().iter().map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_gpu() {
        let written = |memory| MigLayout::ALL.map(|layout| instances(layout, MiB(memory)).to_string());
        assert_eq!(written(40_960), ["4g.20gb,3g.20gb", "2x3g.20gb", "4g.20gb,2g.10gb,1g.5gb", "3x2g.10gb,1g.5gb", "7x1g.5gb"]);
        assert_eq!(written(81_559), ["4g.40gb,3g.40gb", "2x3g.40gb", "4g.40gb,2g.20gb,1g.10gb", "3x2g.20gb,1g.10gb", "7x1g.10gb"]);
    }
}
