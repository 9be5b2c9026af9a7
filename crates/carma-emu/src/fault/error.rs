//! Why a fault cannot be injected.

use thiserror::Error;

use super::NvmlCode;

/// Errors of fault injection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultError {
    /// No such GPU.
    #[error("GPU {name} does not exist: give a number from 0 to {} or a UUID, as `carma emu show` prints them", gpus.saturating_sub(1))]
    NoSuchGpu {
        /// The requested name.
        name: String,
        /// The number of GPUs.
        gpus: usize,
    },
    /// No such process.
    #[error("process {pid} is not on GPU {gpu}")]
    NoSuchProcess {
        /// The process.
        pid: u32,
        /// The GPU.
        gpu: usize,
    },
    /// Not every Xid is an application's.
    #[error("Xid {0} is not caused by a process: only 13, 31 and 43 are")]
    NotOfAProcess(u64),
    /// Its memory does not correct errors.
    #[error("GPU {0} has no ECC memory")]
    NoEcc(usize),
    /// The GPU has less memory than the leak.
    #[error("GPU {gpu} has only {} MiB left to leak", free >> 20)]
    TooLargeALeak {
        /// The GPU.
        gpu: usize,
        /// Bytes that are free.
        free: u64,
    },
    /// No MPS server there.
    #[error("no MPS server is on GPU {0}")]
    NoMpsServer(usize),
    /// No more faults of calls fit in.
    #[error("too many faults of driver calls are set: `carma emu fault clear` removes them")]
    TooMany,
    /// No such error of NVML.
    #[error("{0:?} is not an NVML error: give one of {names}", names = NvmlCode::names().join(", "))]
    NoSuchCode(String),
}
