//! The error output of a Python script that a CUDA error ends.

use crate::cuda::CudaError;

/// PyTorch's addition to every CUDA error except out of memory.
const HINTS: &str = "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n\
    For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n";

/// The message of the exception that PyTorch raises.
pub fn error_message(error: &CudaError) -> String {
    let mut error_message = error.to_string();
    if error_message.starts_with("CUDA error: ") {
        error_message.push_str(HINTS);
    }
    error_message
}

/// The whole traceback, as Python prints it.
pub fn traceback(error: &CudaError) -> String {
    let (line, code) = match error {
        CudaError::NoDevice | CudaError::NoContext | CudaError::Unavailable | CudaError::MpsUnreachable | CudaError::Other(101) => {
            (41, "model = model.to(device)")
        }
        _ => (64, "loss.backward()"),
    };
    format!(
        "Traceback (most recent call last):\n  File \"train.py\", line 88, in <module>\n    main()\n  File \"train.py\", line {line}, in main\n    {code}\n{}: {}",
        error.class(),
        error_message(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracebacks_look_like_those_of_python() {
        insta::assert_snapshot!(traceback(&CudaError::Uncorrectable));
        assert!(traceback(&CudaError::NoDevice).ends_with("\nRuntimeError: No CUDA GPUs are available"));
        assert!(traceback(&CudaError::from_code(101)).contains("RuntimeError: CUDA error: invalid device ordinal\nCUDA kernel errors"));
        let full = CudaError::OutOfMemory { ordinal: 0, wanted: 1 << 30, total: 2 << 30, free: 0, held: 1 << 30, processes: vec![] };
        assert!(traceback(&full).contains("\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has"));
    }
}
