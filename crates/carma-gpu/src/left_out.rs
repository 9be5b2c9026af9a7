//! GPUs that are there and not used, and why.

use std::fmt;

use nvml_wrapper::error::NvmlError;
use serde::Serialize;

use crate::allocation::Exclusion;
use crate::error::DriverError;
use crate::identity::DeviceUuid;
use crate::inventory::Inventory;

/// A GPU that is there and not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// The driver's number of it.
    pub index: u32,
    /// Its UUID, where it tells.
    pub uuid: Option<DeviceUuid>,
    /// Its name, where it tells.
    pub name: Option<String>,
    /// Why.
    pub reason: Unfit,
}

/// Why a GPU is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// It is there to drive a display.
    DisplayOnly,
    /// Nobody may compute on it.
    ComputeProhibited,
    /// It fell off the bus, or needs a reset.
    Lost,
    /// It does not answer as it should.
    Silent(String),
    /// It is not for us.
    Excluded(Exclusion),
}

impl Unfit {
    pub(crate) fn by(error: &DriverError) -> Self {
        match error {
            DriverError::Lost(_) | DriverError::Call { error: NvmlError::GpuLost | NvmlError::ResetRequired, .. } => Self::Lost,
            DriverError::NoPermission { .. } => Self::Excluded(Exclusion::CannotBeOpened),
            error => Self::Silent(error.to_string()),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DisplayOnly => f.write_str("for a display only"),
            Self::ComputeProhibited => f.write_str("compute mode is PROHIBITED"),
            Self::Lost => f.write_str("fell off the bus or needs a reset"),
            Self::Silent(why) => f.write_str(why),
            Self::Excluded(why) => why.fmt(f),
        }
    }
}

impl Inventory {
    /// Which GPUs are not used, or not all of, in a line for each reason.
    ///
    /// ```
    /// # let gpu = |index| carma_gpu::LeftOut { index, uuid: None, name: None, reason: carma_gpu::Unfit::Lost };
    /// # let left_out = vec![gpu(2), gpu(5), gpu(6)];
    /// # let inventory = carma_gpu::Inventory { driver: String::new(), cuda: String::new(), gpus: Vec::new(), left_out };
    /// assert_eq!(inventory.exclusions(), ["GPUs 2, 5 and 6 are not used: fell off the bus or needs a reset"]);
    /// ```
    pub fn exclusions(&self) -> Vec<String> {
        let mut reasons: Vec<(&Unfit, Vec<String>)> = Vec::new();
        for LeftOut { index, reason, .. } in &self.left_out {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, numbers)) => numbers.push(index.to_string()),
                None => reasons.push((reason, vec![index.to_string()])),
            }
        }
        let whole = reasons.into_iter().map(|(reason, numbers)| format!("{} not used: {reason}", subject(&numbers)));
        let parts = self.gpus.iter().filter(|gpu| gpu.usable_instances.is_some());
        let parts = parts.map(|gpu| format!("GPU {} is used in part: its other MIG instances are {}", gpu.index, Exclusion::NotVisible));
        whole.chain(parts).collect()
    }
}

/// `GPU 2 is`, `GPUs 2, 5 and 6 are`.
fn subject(numbers: &[String]) -> String {
    match numbers {
        [only] => format!("GPU {only} is"),
        [others @ .., last] => format!("GPUs {} and {last} are", others.join(", ")),
        [] => String::new(),
    }
}
