//! Why a fault cannot strike.

use thiserror::Error;

use super::NvmlCode;

/// What is wrong with a fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultError {
    /// No such GPU.
    #[error("there is no GPU {name}: give a number from 0 to {} or a UUID, as `carma emu show` prints them", gpus.saturating_sub(1))]
    NoSuchGpu {
        /// What was asked for.
        name: String,
        /// How many there are.
        gpus: usize,
    },
    /// No such process.
    #[error("process {pid} is not on GPU {gpu}")]
    NoSuchProcess {
        /// Which.
        pid: u32,
        /// Where.
        gpu: usize,
    },
    /// Not every Xid is an application's.
    #[error("Xid {0} is no process's fault: only 13, 31 and 43 are")]
    NotOfAProcess(u64),
    /// Its memory does not correct errors.
    #[error("GPU {0} has no ECC memory")]
    NoEcc(usize),
    /// There is not so much memory to leak.
    #[error("GPU {gpu} has only {} MiB left to leak", free >> 20)]
    TooLargeALeak {
        /// Which.
        gpu: usize,
        /// Bytes that are free.
        free: u64,
    },
    /// No MPS server there.
    #[error("no MPS server is on GPU {0}")]
    NoMpsServer(usize),
    /// No more faults of calls fit in.
    #[error("there are too many faults of driver calls already: `carma emu fault clear` removes them")]
    TooMany,
    /// No such error of NVML.
    #[error("{0:?} is no error of NVML: give one of {names}", names = NvmlCode::names().join(", "))]
    NoSuchCode(String),
}
