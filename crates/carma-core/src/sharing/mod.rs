//! How a GPU can be shared: the modes a configuration allows, a job requests, a device has and a GPU can be switched to.

mod gpu_mode;
mod mode;

pub use gpu_mode::{GpuMode, MigLayout, Part};
pub use mode::{CollocationMode, Limits, RequestedMode, SharingMode};
