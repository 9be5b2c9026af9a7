//! Errors of a CUDA program, in PyTorch's words.

use thiserror::Error;

use crate::machine::MachineError;

const GIB: f64 = (1_u64 << 30) as f64;

/// An error of a CUDA call.
#[derive(Debug, Error)]
pub enum CudaError {
    /// Memory ran out while a tensor was allocated.
    #[error(
        "CUDA out of memory. Tried to allocate {}. GPU {ordinal} has a total capacity of {:.2} GiB of which {} is free. {}Of the allocated memory \
         {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting \
         PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  \
         (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
        size(*wanted), *total as f64 / GIB, size(*free), others(*held, processes), size(*held), size(0)
    )]
    OutOfMemory {
        /// The GPU as the program numbers it.
        ordinal: usize,
        /// Requested bytes.
        wanted: u64,
        /// Bytes of the device.
        total: u64,
        /// Bytes that were free.
        free: u64,
        /// Bytes this program had.
        held: u64,
        /// Other processes there and their bytes.
        processes: Vec<(u32, u64)>,
    },
    /// There was no memory even for a context.
    #[error("CUDA error: out of memory")]
    NoContext,
    /// No GPU is visible to the program.
    #[error("No CUDA GPUs are available")]
    NoDevice,
    /// A forked child uses its parent's context.
    #[error("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method")]
    Forked,
    /// Another process has the GPU, and it may be had by one only.
    #[error("CUDA error: CUDA-capable device(s) is/are busy or unavailable")]
    Unavailable,
    /// The GPU fell off the bus.
    #[error("CUDA error: unspecified launch failure")]
    Lost,
    /// An error in memory could not be corrected.
    #[error("CUDA error: uncorrectable ECC error encountered")]
    Uncorrectable,
    /// The MPS server is gone.
    #[error("CUDA error: the remote procedural call between the MPS server and the MPS client failed")]
    MpsServerGone,
    /// The MPS server could not be reached.
    #[error("CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server")]
    MpsUnreachable,
    /// The MPS server waits for clients of an earlier failure, or is about to end.
    #[error("CUDA error: the MPS server is not ready to accept new MPS client requests")]
    MpsNotReady,
    /// The MPS server has reached its limit of clients.
    #[error("CUDA error: the hardware resources required to create MPS client have been exhausted")]
    MpsFull,
    /// The MPS server was ordered to end this client.
    #[error("CUDA error: the MPS client has been terminated by the server")]
    MpsTerminated,
    /// An error the driver reported by number.
    #[error("CUDA error: {}", message(*.0))]
    Other(u32),
    /// The driver is gone while the program runs.
    #[error("CUDA error: no CUDA-capable device is detected")]
    DriverGone,
    /// The emulation itself.
    #[error(transparent)]
    Machine(MachineError),
}

impl From<MachineError> for CudaError {
    fn from(error: MachineError) -> Self {
        if matches!(error, MachineError::Gone(_)) { Self::DriverGone } else { Self::Machine(error) }
    }
}

impl CudaError {
    /// The class that PyTorch raises.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::OutOfMemory { .. } => "torch.OutOfMemoryError",
            _ => "RuntimeError",
        }
    }

    /// From CUDA's number.
    pub const fn from_code(code: u32) -> Self {
        match code {
            2 => Self::NoContext,
            46 => Self::Unavailable,
            100 => Self::NoDevice,
            214 => Self::Uncorrectable,
            719 => Self::Lost,
            805 => Self::MpsUnreachable,
            806 => Self::MpsServerGone,
            807 => Self::MpsNotReady,
            808 => Self::MpsFull,
            810 => Self::MpsTerminated,
            other => Self::Other(other),
        }
    }
}

/// CUDA's message for an error number.
const fn message(code: u32) -> &'static str {
    match code {
        101 => "invalid device ordinal",
        700 => "an illegal memory access was encountered",
        710 => "device-side assert triggered",
        715 => "an illegal instruction was encountered",
        _ => "unknown error",
    }
}

/// Bytes as PyTorch writes them.
fn size(bytes: u64) -> String {
    let bytes_f = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{:.2} KiB", bytes_f / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.2} MiB", bytes_f / 1024.0 / 1024.0),
        _ => format!("{:.2} GiB", bytes_f / GIB),
    }
}

fn others(held: u64, processes: &[(u32, u64)]) -> String {
    let others: Vec<String> = processes.iter().map(|(pid, bytes)| format!("Process {pid} has {} memory in use. ", size(*bytes))).collect();
    let others = others.concat();
    format!("{others}Including non-PyTorch memory, this process has {} memory in use. ", size(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_equal_those_of_pytorch() {
        let error = CudaError::OutOfMemory {
            ordinal: 0,
            wanted: 2 << 30,
            total: 40 << 30,
            free: 300 << 20,
            held: 5 << 30,
            processes: vec![(4711, 34 << 30)],
        };
        let text = error.to_string();
        assert!(text.starts_with("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 40.00 GiB of which 300.00 MiB is free. Process 4711 has 34.00 GiB memory in use. Including non-PyTorch memory, this process has 5.00 GiB memory in use."), "{text}");
    }
}
