//! How a GPU is best shared by the jobs that wait: streams, MPS or instances of MIG, by predicted progress.
//!
//! ```text
//!  jobs that wait ─► progress as the GPU is ─┐
//!        │                                   ├─► ModeChoice: another mode, where it pays for its switch, or none
//!        └─────────► progress in each mode ──┘
//! ```

mod best;
mod progress;
mod thread_share;

pub use best::{CurrentGpu, ModeChoice, ModeForecast, WaitingJob, best_mode};
pub use progress::{Progress, slice_slowdown};
pub use thread_share::thread_share;
