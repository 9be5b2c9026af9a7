//! `[time_slices]`: time slices of jobs that can checkpoint.

use crate::keys::ZeroIsNone;
use crate::section;
use crate::units::Seconds;

section! {
    /// Time slices: how long a job that can checkpoint keeps its GPUs while other jobs wait.
    TimeSliceSettings => #[derive(Copy, Eq)] TimeSliceConfig {
        /// A job that can checkpoint is preempted after this long if other jobs wait for its GPUs. 0: never.
        length: ZeroIsNone<Seconds> [0.0..=31_536_000.0] = None;
    }
}
