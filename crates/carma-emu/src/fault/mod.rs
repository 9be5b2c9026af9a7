//! Fault injection: faults of GPUs and their driver, as changes of the state.

mod error;
mod inject;
mod nvml_code;

pub use error::FaultError;
pub use inject::{clear, recover_gpu};
pub use nvml_code::NvmlCode;

use std::fmt;

use crate::state::{ContextKind, Place, State};

/// Something that is wrong, or happens. GPUs are places in PCI order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A GPU falls off the bus.
    Lost {
        /// The GPU.
        gpu: usize,
    },
    /// The driver reports an Xid.
    Xid {
        /// The GPU.
        gpu: usize,
        /// Its number.
        code: u64,
        /// The process at fault; its calls fail from then on.
        pid: Option<u32>,
    },
    /// A GPU's memory has errors.
    Ecc {
        /// The GPU.
        gpu: usize,
        /// Whether they were corrected; if not, programs there fail.
        corrected: bool,
        /// The number of errors.
        count: u64,
    },
    /// Calls of the driver go wrong.
    Call {
        /// Calls about this GPU, or about any.
        gpu: Option<usize>,
        /// The call of this name, or any.
        call: Option<String>,
        /// The answer.
        answer: CallAnswer,
    },
    /// A GPU runs at half its speed.
    Throttle {
        /// The GPU.
        gpu: usize,
        /// What the driver gives as the reason.
        reason: ThrottleReason,
    },
    /// Memory is in use that belongs to no process.
    Leak {
        /// The GPU.
        gpu: usize,
        /// The additional memory.
        bytes: u64,
    },
}

/// The failure of a driver call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswer {
    /// It does not return while the fault is active.
    Hangs,
    /// It answers this error.
    Fails(NvmlCode),
}

/// A reason of the driver for lower clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThrottleReason {
    /// The server's power supply asks for less power.
    Power,
    /// It is too hot.
    Thermal,
    /// Another one of the hardware.
    Hardware,
}

impl ThrottleReason {
    const ALL: [Self; 3] = [Self::Power, Self::Thermal, Self::Hardware];

    /// NVML's bits.
    const fn bits(self) -> u64 {
        match self {
            Self::Power => 0x80 | 0x8,
            Self::Thermal => 0x20,
            Self::Hardware => 0x8,
        }
    }
}

/// The GPU of a number in PCI order or of a UUID.
pub fn find_gpu(state: &State<'_>, name: &str) -> Result<usize, FaultError> {
    let by_number = name.parse().ok().filter(|gpu| *gpu < state.gpus.len());
    let found = by_number.or_else(|| state.gpus.iter().position(|gpu| gpu.uuid.get() == name));
    found.ok_or_else(|| FaultError::NoSuchGpu { name: name.to_owned(), gpus: state.gpus.len() })
}

/// The MPS server on a GPU.
pub fn mps_server(state: &State<'_>, gpu: usize) -> Result<u32, FaultError> {
    let mut servers = state.contexts_at(Place::gpu(gpu)).filter(|context| context.kind() == ContextKind::MpsServer);
    servers.next().map(|server| server.pid).ok_or(FaultError::NoMpsServer(gpu))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { gpu } => write!(f, "GPU {gpu} is lost"),
            Self::Xid { gpu, code, pid: None } => write!(f, "GPU {gpu}: Xid {code}"),
            Self::Xid { gpu, code, pid: Some(pid) } => write!(f, "GPU {gpu}: Xid {code} of process {pid}"),
            Self::Ecc { gpu, corrected, count } => {
                let (kind, plural) = (if *corrected { "corrected" } else { "uncorrected" }, if *count == 1 { "" } else { "s" });
                write!(f, "GPU {gpu}: {count} {kind} memory error{plural}")
            }
            Self::Throttle { gpu, reason } => {
                let reason = match reason {
                    ThrottleReason::Power => "power",
                    ThrottleReason::Thermal => "heat",
                    ThrottleReason::Hardware => "hardware",
                };
                write!(f, "GPU {gpu} is throttled ({reason})")
            }
            Self::Leak { gpu, bytes } => write!(f, "GPU {gpu}: {} MiB without a process", bytes >> 20),
            Self::Call { gpu, call, answer } => {
                let gpu = gpu.map(|gpu| format!(" about GPU {gpu}")).unwrap_or_default();
                let how = match answer {
                    CallAnswer::Hangs => "hangs".to_owned(),
                    CallAnswer::Fails(code) => format!("answers {code}"),
                };
                write!(f, "{}{gpu} {how}", call.as_deref().unwrap_or("any driver call"))
            }
        }
    }
}
