//! Faults on demand: what can go wrong with GPUs and their driver, as changes of the state.

mod error;
mod nvml_code;
mod strike;

pub use error::FaultError;
pub use nvml_code::NvmlCode;
pub use strike::{bring_back, clear};

use std::fmt;

use crate::state::{ContextKind, Place, State};

/// Something that is wrong, or happens. GPUs are places in PCI order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A GPU falls off the bus.
    Lost {
        /// Which.
        gpu: usize,
    },
    /// The driver reports an Xid.
    Xid {
        /// On which GPU.
        gpu: usize,
        /// Its number.
        code: u64,
        /// The process whose fault it is; its calls fail from then on.
        pid: Option<u32>,
    },
    /// A GPU's memory has errors.
    Ecc {
        /// Which GPU.
        gpu: usize,
        /// Whether they could be corrected; if not, programs there fail.
        corrected: bool,
        /// How many.
        count: u64,
    },
    /// Calls of the driver go wrong.
    Call {
        /// Those about this GPU, or about any.
        gpu: Option<usize>,
        /// The call of this name, or any.
        call: Option<String>,
        /// How.
        answer: CallAnswer,
    },
    /// Memory is in use that belongs to no process.
    Leak {
        /// On which GPU.
        gpu: usize,
        /// How much more.
        bytes: u64,
    },
}

/// How a call of the driver goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAnswer {
    /// It does not come back while the fault stands.
    Hangs,
    /// It answers this error.
    Fails(NvmlCode),
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
            Self::Leak { gpu, bytes } => write!(f, "GPU {gpu}: {} MiB belong to no process", bytes >> 20),
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
