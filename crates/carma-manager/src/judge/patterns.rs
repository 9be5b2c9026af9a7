//! Messages of failing programs and their meanings.

use carma_gpu::mps::MpsFailure;

/// The meaning of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// GPU memory ran out.
    GpuMemory,
    /// A library failed as it does when GPU memory is short, and for other reasons.
    PerhapsGpuMemory,
    /// A process was killed, as the kernel does when the host's memory is short.
    Killed,
    /// Shared memory of the host ran out.
    SharedMemory,
    /// The host's memory ran out or was limited, and the program got an error.
    HostMemory,
    /// The GPU is lost or its memory is broken.
    GpuLost,
    /// The GPU failed or the program did something invalid: the GPU's errors decide.
    GpuTrouble,
    /// MPS is to blame.
    Mps(MpsFailure),
    /// A consequence of another failure.
    Consequence,
    /// Something else.
    Other,
}

use Meaning::{Consequence, GpuLost, GpuMemory, GpuTrouble, HostMemory, Killed, Other, PerhapsGpuMemory, SharedMemory};

/// Words in lower case that a line must all contain.
type Pattern = (&'static [&'static str], Meaning);

/// By source. The first match counts, so specific entries come before general ones.
const PATTERNS: &[(&str, &[Pattern])] = &[
    (
        "not what it seems",
        &[
            // TensorFlow, about an allocation that it can do without.
            (&["the caller indicates that this is not a failure"], Other),
            (&["no space left on device"], Other),
            // Triton, about the resources of a multiprocessor.
            (&["out of resource: shared memory"], Other),
            // Ray, about the node's memory.
            (&["ray.exceptions.outofmemoryerror"], Killed),
            (&["java.lang.outofmemoryerror"], HostMemory),
            (&["oom when allocating tensor", "by allocator cpu"], HostMemory),
            (&["oom when allocating tensor", "by allocator mklcpu"], HostMemory),
        ],
    ),
    (
        "PyTorch",
        &[
            (&["cuda out of memory"], GpuMemory),
            (&["hip out of memory"], GpuMemory),
            (&["torch.outofmemoryerror"], GpuMemory),
            (&["torch.cuda.outofmemoryerror"], GpuMemory),
            (&["c10::outofmemoryerror"], GpuMemory),
            (&["unable to find a valid cudnn algorithm"], PerhapsGpuMemory),
            (&["unable to find an engine to execute this computation"], PerhapsGpuMemory),
            (&["dataloader worker", "killed by signal: killed"], Killed),
            (&["dataloader worker", "killed by signal: bus error"], SharedMemory),
            (&["insufficient shared memory (shm)"], SharedMemory),
            (&["signal 9 (sigkill) received by pid"], Killed),
            (&["defaultcpuallocator"], HostMemory),
            (&["childfailederror"], Consequence),
            (&["processexitedexception"], Consequence),
            (&["processraisedexception"], Consequence),
            (&["signalexception"], Consequence),
            (&["watchdog caught collective operation timeout"], Consequence),
            (&["process group watchdog thread terminated"], Consequence),
            (&["dataloader worker", "exited unexpectedly"], Consequence),
        ],
    ),
    (
        "TensorFlow and Paddle",
        &[
            (&["oom when allocating tensor"], GpuMemory),
            (&["resourceexhaustederror"], GpuMemory),
            (&["_bfc) ran out of memory trying to allocate"], GpuMemory),
            (&["failed to get convolution algorithm"], PerhapsGpuMemory),
            (&["dst tensor is not copied"], PerhapsGpuMemory),
        ],
    ),
    ("JAX", &[(&["resource_exhausted", "out of memory"], GpuMemory), (&["resource_exhausted", "failed to allocate"], GpuMemory)]),
    (
        "CuPy, ONNX Runtime, vLLM, Triton",
        &[
            (&["cupy.cuda.memory.outofmemoryerror"], GpuMemory),
            (&["failed to allocate memory for requested buffer"], GpuMemory),
            (&["no available memory for the cache blocks"], GpuMemory),
            (&["free memory on device", "less than desired gpu memory utilization"], GpuMemory),
            (&["failed to allocate", "gpu memory"], GpuMemory),
            (&["engine core initialization failed"], Consequence),
            (&["engine process failed to start"], Consequence),
            (&["enginedeaderror"], Consequence),
            (&["raytaskerror"], Consequence),
        ],
    ),
    (
        "NVIDIA's libraries",
        &[
            (&["cublas_status_alloc_failed"], GpuMemory),
            (&["cudnn_status_alloc_failed"], GpuMemory),
            (&["cusolver_status_alloc_failed"], GpuMemory),
            (&["cusparse_status_alloc_failed"], GpuMemory),
            (&["cufft_alloc_failed"], GpuMemory),
            (&["cudnn_status_internal_error"], PerhapsGpuMemory),
            (&["cudnn_status_not_initialized"], PerhapsGpuMemory),
            (&["cudnn_status_execution_failed"], PerhapsGpuMemory),
            (&["cublas_status_not_initialized"], PerhapsGpuMemory),
            (&["cufft_internal_error"], PerhapsGpuMemory),
        ],
    ),
    (
        "CUDA",
        &[
            (&["cuda_error_out_of_memory"], GpuMemory),
            (&["cudaerrormemoryallocation"], GpuMemory),
            (&["cuda", "out of memory"], GpuMemory),
            (&["gpu", "out of memory"], GpuMemory),
            (&["device", "out of memory"], GpuMemory),
            (&["gpu is lost"], GpuLost),
            (&["fallen off the bus"], GpuLost),
            (&["uncorrectable ecc error"], GpuLost),
            (&["uncorrectable nvlink error"], GpuLost),
            (&["ecc_uncorrectable"], GpuLost),
            (&["eccuncorrectable"], GpuLost),
            (&["unspecified launch failure"], GpuTrouble),
            (&["cuda_error_launch_failed"], GpuTrouble),
            (&["cudaerrorlaunchfailure"], GpuTrouble),
            (&["an illegal memory access was encountered"], GpuTrouble),
            (&["device(s) is/are busy or unavailable"], GpuTrouble),
            (&["cudaerrordevicesunavailable"], GpuTrouble),
            (&["no cuda-capable device is detected"], GpuTrouble),
            (&["no cuda gpus are available"], GpuTrouble),
            (&["cuda_error_no_device"], GpuTrouble),
            (&["cuda error: unknown error"], GpuTrouble),
            (&["unexpected error from cudagetdevicecount"], GpuTrouble),
        ],
    ),
    ("NCCL", &[(&["ncclremoteerror"], Consequence), (&["ncclsystemerror"], Consequence), (&["distbackenderror"], Consequence)]),
    (
        "Python, C++ and shells",
        &[
            (&["died with <signals.sigkill: 9>"], Killed),
            (&["excessive memory usage", "sigkill(-9)"], Killed),
            (&[" killed     "], Killed),
            (&["memoryerror"], HostMemory),
            (&["std::bad_alloc"], HostMemory),
            (&["cannot allocate memory"], HostMemory),
            (&["calledprocesserror"], Consequence),
            (&["connection closed by peer"], Consequence),
            (&["connection reset by peer"], Consequence),
            (&["broken pipe"], Consequence),
            (&["eoferror"], Consequence),
            (&["brokenprocesspool"], Consequence),
            (&["keyboardinterrupt"], Consequence),
            (&["fatal python error: aborted"], Consequence),
        ],
    ),
];

/// Words of a program that handled a problem: it did not end the program.
const HANDLED: [&str; 12] = [
    "retry",
    "retrying",
    "handled",
    "caught",
    "skipping",
    "skipped",
    "reducing",
    "lowering",
    "recovered",
    "recovering",
    "ignored",
    "ignoring",
];

/// The meaning of a line, if any entry matches.
pub(super) fn meaning(line: &str) -> Option<Meaning> {
    if let Some(failure) = MpsFailure::in_log(line) {
        return Some(Meaning::Mps(failure));
    }
    let lower = line.to_lowercase();
    if lower.trim() == "killed" {
        return Some(Killed);
    }
    let fits = |(words, _): &&Pattern| words.iter().all(|word| lower.contains(word));
    PATTERNS.iter().flat_map(|(_, wordings)| *wordings).find(fits).map(|(_, meaning)| *meaning)
}

/// Whether a line reports that a problem was handled, and not that handling failed.
pub(super) fn is_handled(line: &str) -> bool {
    let lower = line.to_lowercase();
    let words = || lower.split(|letter: char| !letter.is_alphabetic());
    words().any(|word| HANDLED.contains(&word)) && words().all(|word| word != "failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_match() {
        for (source, wordings) in PATTERNS {
            for (words, means) in *wordings {
                let line = words.join(" ");
                assert_eq!(line, line.to_lowercase(), "{source}: words are compared in lower case");
                assert_eq!(meaning(&line), Some(*means), "{source}: {line:?} is hidden by one before it");
            }
        }
    }

    #[test]
    fn the_source_of_a_line_outweighs_its_similarity() {
        for (line, means) in [
            (
                "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/detail/error.hpp: cudaErrorMemoryAllocation",
                Some(GpuMemory),
            ),
            ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array", Some(HostMemory)),
            ("ncclUnhandledCudaError: Call to CUDA function failed. Cuda failure 2 'out of memory'", Some(GpuMemory)),
            ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 135168", Some(Other)),
            ("slurm/script: line 12: 31337 Killed                  python train.py", Some(Killed)),
            ("epoch 3 loss 0.17", None),
            ("nobody was killed in this film", None),
        ] {
            assert_eq!(meaning(line), means, "{line}");
        }
    }

    #[test]
    fn handled_errors_are_distinguished_from_unhandled_ones() {
        assert!(is_handled("CUDA out of memory, retrying with batch size 8"));
        assert!(is_handled("WARNING: skipping a batch: CUDA out of memory"));
        assert!(!is_handled("[10:00:00] pooled_storage_manager.h:161: cudaMalloc retry failed: out of memory"));
        assert!(!is_handled("CUDA out of memory. Tried to allocate 2.00 GiB. If reserved memory is large, split to avoid fragmentation."));
    }
}
