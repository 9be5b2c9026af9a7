//! The GPUs of one host: which there are, under which numbers, and their samples. The manager uses it for its own host, an agent for its server.

mod devices;
mod excluded;
mod sample;
mod sampler;

pub use self::devices::names_gpu;
pub(crate) use self::devices::{Device, Devices, LOCAL_SERVER, Numbers};
pub(crate) use self::excluded::ExcludedGpus;
pub(crate) use self::sample::GpuSample;
pub(crate) use self::sampler::{Sampled, Sampler, SamplerSetup};
