//! GPUs and servers to simulate.

mod gpu_type;
mod power;
mod servers;
mod sharing;

pub use gpu_type::{GPU_TYPES, GpuType};
pub(crate) use power::rank_power;
pub use power::{capped_speed, device_power};
pub use servers::{ServerGroup, Servers, ServersError};
pub use sharing::Sharing;
