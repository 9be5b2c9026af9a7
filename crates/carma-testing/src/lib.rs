//! Shared by the tests of all crates: skips, and resources that not every machine has.
//!
//! A test that cannot run here says so with [`skip!`] or [`need!`]. The skip is recorded, and `make test` lists all skips at its end. Under CI a
//! test may be skipped only for what CI cannot have ([`Missing::may_lack_in_ci`]); for anything else the test fails.

#![allow(clippy::panic, reason = "a test fails by a panic")]

mod missing;
mod resources;
mod skip;
pub mod slurm;

pub use missing::Missing;
pub use resources::{ControlGroup, NOBODY, as_nobody, nvidia, program, published_data, root, thread_as};
pub use skip::record;

/// Ends the test that calls it as skipped, because of a [`Missing`].
#[macro_export]
macro_rules! skip {
    ($missing:expr) => {{
        fn here() {}
        $crate::record(std::any::type_name_of_val(&here), &$missing);
        return;
    }};
}

/// Unwraps a `Result<T, Missing>`, or skips the calling test.
#[macro_export]
macro_rules! need {
    ($resource:expr) => {
        match $resource {
            Ok(resource) => resource,
            Err(missing) => $crate::skip!(missing),
        }
    };
}
