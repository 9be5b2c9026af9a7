//! What a GPU can do at most, and what each kernel costs whatever its size.

/// Limits of a GPU, from its data sheet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// Streaming multiprocessors.
    pub multiprocessors: f64,
    /// Operations a second in 4-byte floats, without tensor cores.
    pub plain: f64,
    /// The same in the shortened 4-byte floats of tensor cores (TF32).
    pub tensor: f64,
    /// The same in 2-byte floats on tensor cores.
    pub half: f64,
    /// Bytes a second to and from memory.
    pub bandwidth: f64,
    /// Seconds that a kernel takes at least.
    pub launch: f64,
    /// Seconds that PyTorch takes on the host to issue a kernel: where kernels are shorter, the device waits.
    pub issue: f64,
}

impl Device {
    /// An A100 with 40 GB.
    pub const A100: Self =
        Self { multiprocessors: 108.0, plain: 19.5e12, tensor: 156e12, half: 312e12, bandwidth: 1.555e12, launch: 5e-6, issue: 10e-6 };
}
