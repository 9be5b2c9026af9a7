//! The work of one training iteration as kernels: operations, bytes, thread blocks, and the roofline over them.

mod cost;
mod device;
mod kernel;
mod layers;
mod update;

pub use device::Device;
pub use kernel::{Bound, Kernel, Pipe};
pub use layers::{LayerKernels, layers};
pub use update::{loss, optimizer};
